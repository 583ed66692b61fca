#include "models/classifiers/text_layer.h"

#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/document_attention.h"
#include "models/attention/long_short_attention_1d.h"

namespace longshort::models {

HiddenRows TextLayer::operator()(const HiddenRows& hidden, int64_t documents, ItemAttention& attention,
                                 bool cls_only) const {
  const bool has_cls = hidden.cls.defined();
  const int64_t cls_rows = has_cls ? documents : 0, token_rows = hidden.tokens.size(0);

  const at::Tensor tokens = norm1(hidden.tokens);
  // All rows, those of CLS first, so that there is one product per weight.
  const at::Tensor input = has_cls ? at::cat({normalized_cls ? norm1(hidden.cls) : hidden.cls, tokens}) : tokens;
  const auto project = [&](const Linear& map) { return map(input).split_with_sizes({cls_rows, token_rows}); };
  const std::vector<at::Tensor> queries = project(query), keys = project(key), values = project(value);
  const RowKeyValues window = {.keys = window_norm(keys[1]), .values = window_norm(values[1])};
  RowKeyValues cls;
  if (has_cls) cls = {.keys = keys[0], .values = values[0]};

  const RowKeyValues shared = SharedVectors(tokens, window, cls, documents, attention);
  const at::Tensor attended =
      attention.AttendInDocuments({.heads = heads, .queries = queries[1], .tokens = window, .shared = shared});
  // CLS attends to the tokens' attention output before the convolution, and to its own key and value without
  // shared_norm.
  at::Tensor cls_attended;
  if (has_cls) {
    cls_attended = at::empty(queries[0].sizes(), queries[0].options());
    attention.AttendToRows(
        {.heads = heads, .queries = queries[0], .own = cls, .rows = attended, .attended = cls_attended});
  }
  if (cls_only) return {.tokens = {}, .cls = Finish(hidden.cls, cls_attended)};

  if (value_taps.defined()) {
    attention.ConvolveValues({.heads = heads, .taps = value_taps, .values = window.values, .sums = attended});
  }
  if (!has_cls) return {.tokens = Finish(hidden.tokens, attended), .cls = {}};
  const std::vector<at::Tensor> finished =
      Finish(at::cat({hidden.cls, hidden.tokens}), at::cat({cls_attended, attended}))
          .split_with_sizes({cls_rows, token_rows});
  return {.tokens = finished[1], .cls = finished[0]};
}

void TextLayer::MoveBy(TensorMove& move) {
  move(norm1, norm2, query, key, value, output, window_norm, dynamic_projection, value_taps);
  move(feed_forward_in, feed_forward_out);
  move.AsTheyAre(shared_norm);  // kernels read it in its stored type
}

int64_t TextLayer::MultiplyAdds(const PackedDocuments& packed, bool has_cls, bool cls_only) const {
  const int64_t width = output.weight.size(1), tokens = packed.rows();
  const int64_t cls = has_cls ? static_cast<int64_t>(packed.documents.size()) : 0;
  int64_t done = (cls + tokens) * (query.weight.numel() + key.weight.numel() + value.weight.numel());
  int64_t shared = has_cls ? 1 : 0;
  if (dynamic_projection.weight.defined()) {
    const int64_t rank = dynamic_projection.weight.size(0) / heads;
    done += tokens * (dynamic_projection.weight.numel() + 2 * rank * width);
    shared += rank;
  }
  done += AttentionMultiplyAdds(packed, shared, width);
  if (has_cls) done += 2 * (tokens + cls) * width;
  if (!cls_only && value_taps.defined()) done += ConvolvedPairs(packed, value_taps.size(1)) * width;
  const int64_t finished = cls_only ? cls : cls + tokens;
  return done + finished * (output.weight.numel() + feed_forward_in.weight.numel() + feed_forward_out.weight.numel());
}

RowKeyValues TextLayer::SharedVectors(const at::Tensor& input, const RowKeyValues& tokens, const RowKeyValues& cls,
                                      int64_t documents, ItemAttention& attention) const {
  const bool has_cls = cls.keys.defined();
  if (!dynamic_projection.weight.defined()) {
    const auto vectors = [&](const at::Tensor& of_cls) {
      return has_cls ? shared_norm(of_cls).unsqueeze(1) : at::empty({documents, 0, input.size(1)}, input.options());
    };
    return {.keys = vectors(cls.keys), .values = vectors(cls.values)};
  }
  const RowKeyValues shared = attention.Landmarks({.heads = heads,
                                                   .logits = dynamic_projection(input),
                                                   .tokens = tokens,
                                                   .key_norm = shared_norm,
                                                   .value_norm = shared_norm},
                                                  /*others=*/has_cls ? 1 : 0);
  if (has_cls) {
    shared.keys.select(1, 0).copy_(shared_norm(cls.keys));
    shared.values.select(1, 0).copy_(shared_norm(cls.values));
  }
  return shared;
}

at::Tensor TextLayer::Finish(const at::Tensor& rows, const at::Tensor& attended) const {
  const at::Tensor middle = rows + output(attended);
  const at::Tensor inner = at::gelu(feed_forward_in(norm2(middle)));
  return middle + feed_forward_out(inner);
}

}  // namespace longshort::models
