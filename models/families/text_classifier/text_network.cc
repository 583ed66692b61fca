#include "models/families/text_classifier/text_network.h"

#include <algorithm>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

// Whether the CLS row is a token's, with a position before the others'.
bool IsClsToken(const TextClassifierConfig& config) {
  return config.cls == ClsKind::kVocabulary || config.cls == ClsKind::kFirstToken;
}

TextLayer MakeLayer(const TextClassifierConfig& config, const NamedTensors& tensors) {
  const double epsilon = config.layer_norm_epsilon;
  TextLayer layer{
      .norm1 = tensors.MakeNorm("norm1", epsilon),
      .norm2 = tensors.MakeNorm("norm2", epsilon),
      .query = tensors.MakeLinear("mha.W_q"),
      .key = tensors.MakeLinear("mha.W_k"),
      .value = tensors.MakeLinear("mha.W_v"),
      .output = tensors.MakeLinear("mha.W_o"),
      .window_norm = {},
      .shared_norm = {},
      .dynamic_projection = {},
      .value_taps = {},
      .feed_forward = {.in = tensors.MakeLinear("mlpblock.0"), .out = tensors.MakeLinear("mlpblock.3")},
      .heads = config.heads,
      .norms_after = config.layer_norm == LayerNormPlace::kAfter,
      // A CLS token is a row of the sequence, and norm1 normalises the whole sequence.
      .normalized_cls = config.normalized_cls || IsClsToken(config),
      .cls_sees_keys = config.cls == ClsKind::kFirstToken,
  };
  if (config.dual_norm) {
    layer.window_norm = tensors.MakeNorm("mha.dual_ln_l", epsilon);
    layer.shared_norm = tensors.MakeNorm("mha.dual_ln_s", epsilon);
  }
  if (config.projection_rank > 0) layer.dynamic_projection = tensors.MakeLinear("mha.dconv_fc");
  if (config.value_convolution > 0) layer.value_taps = tensors.Weight("mha.conv").flatten(1);
  return layer;
}

}  // namespace

PackedDocuments TextNetwork::Pack(absl::Span<const absl::Span<const int32_t>> documents) const {
  PackedDocuments packed = PackDocuments(documents, Windows(), Tokens());
  if (config.cls == ClsKind::kVocabulary) packed.cls_ids.assign(documents.size(), config.vocabulary_size - 1);
  return packed;
}

PackedIds TextNetwork::PackForGpu(absl::Span<const absl::Span<const int32_t>> documents) const {
  PackedIds packed = PackIds(documents, Windows(), Tokens());
  if (config.cls == ClsKind::kVocabulary)
    packed.cls_ids.assign(documents.size(), static_cast<int32_t>(config.vocabulary_size - 1));
  return packed;
}

std::vector<int32_t> TextNetwork::Joined(absl::Span<const int32_t> first, absl::Span<const int32_t> second) const {
  std::vector<int32_t> joined(first.begin(), first.end());
  joined.insert(joined.end(), second.begin(), second.end());
  const auto is_token = [this](int32_t id) { return id != config.padding_id; };
  *std::find_if(joined.begin() + static_cast<int64_t>(first.size()), joined.end(), is_token) =
      static_cast<int32_t>(config.separator_id);
  return joined;
}

at::Tensor TextNetwork::Run(ClassifierOutput output, const DocumentTokens& documents, ItemAttention& attention) const {
  if (output == ClassifierOutput::kMeanOfTokens) return MeanOfTokens(documents, attention);
  const at::Tensor features = Features(documents, attention);
  if (output == ClassifierOutput::kFeatures) return features.to(at::kFloat);
  at::Tensor of_items = features.to(at::kFloat).view({-1, config.NetworkDocuments() * config.model_width});
  if (config.classes == 0) return of_items;
  at::Tensor logits = Head(features).to(at::kFloat);
  return output == ClassifierOutput::kLogits ? logits : at::cat({logits, of_items}, 1);
}

at::Tensor TextNetwork::Run(ClassifierOutput output, std::shared_ptr<const PackedDocuments> packed,
                            Dropout* dropout) const {
  DocumentTokens documents = TokensOf(*packed, word_embeddings.device());
  documents.packed = packed.get();
  CpuItemAttention attention(std::move(packed), dropout);
  return Run(output, documents, attention);
}

at::Tensor TextNetwork::Head(const at::Tensor& rows) const {
  at::Tensor items = rows;
  if (config.NetworkDocuments() == 2) {
    const std::vector<at::Tensor> pair = rows.unflatten(0, {-1, 2}).unbind(1);
    items = at::cat({pair[0], pair[1], pair[0] * pair[1], pair[0] - pair[1]}, 1);
  }
  return head_out(config.head == HeadKind::kTanh ? at::tanh(head_in(items)) : head_in.Relu(items));
}

at::Tensor TextNetwork::Features(const DocumentTokens& documents, ItemAttention& attention) const {
  const HiddenRows hidden = Encode(documents, attention, /*cls_only=*/true);
  return hidden.cls_rows > 0 ? hidden.cls() : attention.MeanOfRows(hidden.all, config.PooledLength());
}

at::Tensor TextNetwork::MeanOfTokens(const DocumentTokens& documents, ItemAttention& attention) const {
  const HiddenRows hidden = Encode(documents, attention, /*cls_only=*/false);
  const at::Tensor sums = attention.MeanOfRows(hidden.tokens().to(at::kFloat), /*length=*/1);
  const at::Tensor lengths = documents.lengths.unsqueeze(1);
  // The first token is one of the document's.
  return config.cls == ClsKind::kFirstToken ? (sums + hidden.cls()) / (lengths + 1) : sums / lengths;
}

int64_t TextNetwork::MultiplyAddsOf(ClassifierOutput output, const DocumentCounts& batch) const {
  int64_t done = 0;
  if (config.classes > 0 && (output == ClassifierOutput::kLogits || output == ClassifierOutput::kLogitsAndFeatures)) {
    const int64_t items = batch.documents / config.NetworkDocuments();
    done += items * (head_in.multiply_adds() + head_out.multiply_adds());
  }
  for (size_t index = 0; index < layers.size(); ++index) {
    const bool has_cls = HasCls(index), last = index + 1 == layers.size();
    done += layers[index].MultiplyAdds(batch, has_cls,
                                       /*cls_only=*/has_cls && last && output != ClassifierOutput::kMeanOfTokens);
  }
  return done;
}

bool TextNetwork::HasCls(size_t layer) const {
  if (config.cls == ClsKind::kLastLayer) return layer + 1 == layers.size();
  return config.cls != ClsKind::kNone;
}

void TextNetwork::MoveBy(TensorMove& move) {
  move(word_embeddings, position_embeddings, cls, head_in, head_out);
  move.AsTheyAre(embedding_norm, norm);  // kernels read them
  for (TextLayer& layer : layers) layer.MoveBy(move);
}

HiddenRows TextNetwork::Embed(const DocumentTokens& documents, ItemAttention& attention) const {
  at::Tensor ids = documents.ids, positions = documents.positions;
  const bool cls_is_token = IsClsToken(config);
  if (cls_is_token) {
    ids = at::cat({documents.cls_ids, ids});
    positions = at::cat({at::zeros_like(documents.cls_ids), positions + 1});
  }
  const at::Tensor rows = attention.Embed(word_embeddings, ids, position_embeddings, positions);
  return {embedding_norm.gain.defined() ? attention.Norm(embedding_norm, rows) : rows,
          cls_is_token ? documents.documents : 0};
}

HiddenRows TextNetwork::Encode(const DocumentTokens& documents, ItemAttention& attention, bool cls_only) const {
  HiddenRows hidden = Embed(documents, attention);
  hidden.all = Dropped(attention.dropout(), hidden.all);
  hidden = documents.packed != nullptr && CanFuse(layers, *documents.packed)
               ? Fused(hidden, *documents.packed, cls_only)
               : LayerByLayer(std::move(hidden), documents.documents, attention, cls_only);
  if (norm.gain.defined()) hidden.all = attention.Norm(norm, hidden.all);
  return hidden;
}

HiddenRows TextNetwork::LayerByLayer(HiddenRows hidden, int64_t documents, ItemAttention& attention,
                                     bool cls_only) const {
  for (size_t index = 0; index < layers.size(); ++index) {
    if (HasCls(index) && hidden.cls_rows == 0) {
      hidden.first_cls = cls.expand({documents, -1});
      hidden.cls_rows = documents;
    }
    const bool last = index + 1 == layers.size(), only_cls = cls_only && last && hidden.cls_rows > 0;
    hidden = layers[index](std::move(hidden), documents, attention, only_cls);
  }
  return hidden;
}

HiddenRows TextNetwork::Fused(const HiddenRows& embedded, const PackedDocuments& packed, bool cls_only) const {
  const int64_t cls_layer = config.cls == ClsKind::kLastLayer ? std::ssize(layers) - 1 : 0;
  at::Tensor cls_rows;
  if (embedded.cls_rows > 0) {
    cls_rows = embedded.cls();
  } else if (config.HasClsParameter()) {
    cls_rows = cls.expand({static_cast<int64_t>(packed.documents.size()), -1});
  }
  return RunFused(layers, packed, embedded.tokens(), cls_rows, cls_layer, cls_only && cls_rows.defined());
}

TextNetwork MakeTextNetwork(const TextClassifierConfig& config, const TensorSource& tensor) {
  const NamedTensors tensors(tensor);
  TextNetwork network{
      .config = config,
      .word_embeddings = tensor("model.embeddings.word_embeddings.weight"),
      .position_embeddings = tensor("model.embeddings.position_embeddings.weight"),
      .embedding_norm = {},
      .cls = config.HasClsParameter() ? tensor("model.cls_embed").view({1, -1}) : at::Tensor(),
      .layers = {},
      .norm = {},
      .head_in = {},
      .head_out = {},
  };
  const bool norms_after = config.layer_norm == LayerNormPlace::kAfter;
  (norms_after ? network.embedding_norm : network.norm) =
      tensors.MakeNorm(norms_after ? "model.embeddings.norm" : "model.norm", config.layer_norm_epsilon);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    network.layers.push_back(MakeLayer(config, tensors.Below(TextLayerPrefix(config, layer))));
  if (config.classes > 0) {
    network.head_in = tensors.MakeLinear("seq_classifer.mlpblock.0");
    network.head_out = tensors.MakeLinear("seq_classifer.mlpblock.2");
  }
  return network;
}

}  // namespace longshort::models
