#include "models/classifiers/text_network.h"

#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/cpu_item_attention.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {
namespace {

TextLayer MakeLayer(const TextClassifierConfig& config, const NamedTensors& tensors) {
  TextLayer layer{
      .norm1 = tensors.MakeNorm("norm1"),
      .norm2 = tensors.MakeNorm("norm2"),
      .query = tensors.MakeLinear("mha.W_q"),
      .key = tensors.MakeLinear("mha.W_k"),
      .value = tensors.MakeLinear("mha.W_v"),
      .output = tensors.MakeLinear("mha.W_o"),
      .window_norm = tensors.MakeNorm("mha.dual_ln_l"),
      .shared_norm = tensors.MakeNorm("mha.dual_ln_s"),
      .dynamic_projection = {},
      .value_taps = {},
      .feed_forward_in = tensors.MakeLinear("mlpblock.0"),
      .feed_forward_out = tensors.MakeLinear("mlpblock.3"),
      .heads = config.heads,
      // A CLS token of the vocabulary is a row of the sequence, and norm1 normalises the whole sequence.
      .normalized_cls = config.normalized_cls || config.cls == ClsKind::kVocabulary,
  };
  if (config.projection_rank > 0) layer.dynamic_projection = tensors.MakeLinear("mha.dconv_fc");
  if (config.value_convolution > 0) layer.value_taps = tensors.Weight("mha.conv").flatten(1);
  return layer;
}

}  // namespace

PackedDocuments TextNetwork::Pack(absl::Span<const absl::Span<const int32_t>> documents) const {
  return PackDocuments(documents, {.size = config.window_size, .see_nothing = config.projection_rank > 0});
}

at::Tensor TextNetwork::Run(ClassifierOutput output, const DocumentTokens& documents, ItemAttention& attention) const {
  if (output == ClassifierOutput::kMeanOfTokens) return MeanOfTokens(documents, attention);
  const at::Tensor features = Features(documents, attention);
  if (output == ClassifierOutput::kFeatures) return features.to(at::kFloat);
  const at::Tensor logits = Head(features).to(at::kFloat);
  if (output == ClassifierOutput::kLogits) return logits;
  return at::cat({logits, features.to(at::kFloat).view({logits.size(0), -1})}, 1);
}

at::Tensor TextNetwork::Run(ClassifierOutput output, std::shared_ptr<const PackedDocuments> packed) const {
  const DocumentTokens documents = TokensOf(*packed, word_embeddings.device());
  CpuItemAttention attention(std::move(packed));
  return Run(output, documents, attention);
}

at::Tensor TextNetwork::Head(const at::Tensor& rows) const {
  at::Tensor items = rows;
  if (config.documents == 2) {
    const std::vector<at::Tensor> pair = rows.unflatten(0, {-1, 2}).unbind(1);
    items = at::cat({pair[0], pair[1], pair[0] * pair[1], pair[0] - pair[1]}, 1);
  }
  return head_out(at::relu(head_in(items)));
}

at::Tensor TextNetwork::Features(const DocumentTokens& documents, ItemAttention& attention) const {
  const HiddenRows hidden = Encode(documents, attention, /*cls_only=*/true);
  return hidden.cls.defined() ? hidden.cls : attention.MeanOfRows(hidden.tokens, config.PooledLength());
}

at::Tensor TextNetwork::MeanOfTokens(const DocumentTokens& documents, ItemAttention& attention) const {
  const HiddenRows hidden = Encode(documents, attention, /*cls_only=*/false);
  return attention.MeanOfRows(hidden.tokens.to(at::kFloat), /*length=*/1) / documents.lengths.unsqueeze(1);
}

int64_t TextNetwork::MultiplyAdds(ClassifierOutput output, const PackedDocuments& packed) const {
  int64_t done = 0;
  if (output == ClassifierOutput::kLogits || output == ClassifierOutput::kLogitsAndFeatures) {
    const int64_t items = static_cast<int64_t>(packed.documents.size()) / config.documents;
    done += items * (head_in.weight.numel() + head_out.weight.numel());
  }
  for (size_t index = 0; index < layers.size(); ++index) {
    const bool has_cls = HasCls(index), last = index + 1 == layers.size();
    done += layers[index].MultiplyAdds(packed, has_cls,
                                       /*cls_only=*/has_cls && last && output != ClassifierOutput::kMeanOfTokens);
  }
  return done;
}

bool TextNetwork::HasCls(size_t layer) const {
  if (config.cls == ClsKind::kLastLayer) return layer + 1 == layers.size();
  return config.cls != ClsKind::kNone;
}

void TextNetwork::MoveBy(TensorMove& move) {
  move(word_embeddings, position_embeddings, cls, norm, head_in, head_out);
  for (TextLayer& layer : layers) layer.MoveBy(move);
}

HiddenRows TextNetwork::Encode(const DocumentTokens& documents, ItemAttention& attention, bool cls_only) const {
  const bool cls_is_token = config.cls == ClsKind::kVocabulary;
  HiddenRows hidden;
  hidden.tokens = at::embedding(word_embeddings, documents.ids) +
                  at::embedding(position_embeddings, cls_is_token ? documents.positions + 1 : documents.positions);
  const auto for_each_document = [&](const at::Tensor& row) { return row.expand({documents.documents, -1}); };
  if (cls_is_token) hidden.cls = for_each_document(word_embeddings[-1] + position_embeddings[0]);
  if (config.cls == ClsKind::kAllLayers) hidden.cls = for_each_document(cls);

  for (size_t index = 0; index < layers.size(); ++index) {
    const bool last = index + 1 == layers.size();
    if (last && config.cls == ClsKind::kLastLayer) hidden.cls = for_each_document(cls);
    hidden = layers[index](hidden, documents.documents, attention, cls_only && last && hidden.cls.defined());
  }
  const auto normalized = [this](const at::Tensor& rows) { return rows.defined() ? norm(rows) : rows; };
  return {.tokens = normalized(hidden.tokens), .cls = normalized(hidden.cls)};
}

TextNetwork MakeTextNetwork(const TextClassifierConfig& config, const TensorSource& tensor) {
  const NamedTensors tensors(tensor);
  TextNetwork network{
      .config = config,
      .word_embeddings = tensor("model.embeddings.word_embeddings.weight"),
      .position_embeddings = tensor("model.embeddings.position_embeddings.weight"),
      .cls = config.HasClsParameter() ? tensor("model.cls_embed").view({1, -1}) : at::Tensor(),
      .layers = {},
      .norm = tensors.MakeNorm("model.norm"),
      .head_in = tensors.MakeLinear("seq_classifer.mlpblock.0"),
      .head_out = tensors.MakeLinear("seq_classifer.mlpblock.2"),
  };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    network.layers.push_back(MakeLayer(config, tensors.Below(TextLayerPrefix(config, layer))));
  return network;
}

}  // namespace longshort::models
