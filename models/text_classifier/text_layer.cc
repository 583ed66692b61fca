#include "models/text_classifier/text_layer.h"

#include <algorithm>
#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/long_short_attention_1d.h"
#include "models/text_classifier/document_attention.h"

namespace longshort {
namespace {

at::Tensor IntegerTensor(const std::vector<int64_t>& values, const at::Device& device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor.to(device);
}

}  // namespace

DocumentBatch MakeDocumentBatch(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& rule,
                                const at::Device& device) {
  const auto packed = std::make_shared<const PackedDocuments>(PackDocuments(documents, rule));
  return {.packed = packed,
          .lengths = packed->Lengths(),
          .ids = IntegerTensor(packed->ids, device),
          .positions = IntegerTensor(packed->positions, device)};
}

HiddenRows TextLayer::operator()(const HiddenRows& hidden, const DocumentBatch& batch, bool cls_only,
                                 int64_t& multiply_adds) const {
  const bool has_cls = hidden.cls.defined();
  const int64_t cls_rows = has_cls ? batch.documents() : 0, token_rows = batch.packed->rows();
  const double scale = 1 / std::sqrt(static_cast<double>(hidden.tokens.size(1)) / static_cast<double>(heads));

  const at::Tensor tokens = norm1(hidden.tokens);
  // All rows, those of CLS first: one product per weight.
  const at::Tensor input = has_cls ? at::cat({normalized_cls ? norm1(hidden.cls) : hidden.cls, tokens}) : tokens;
  const auto project = [&](const Linear& map) {
    return Apply(map, input, multiply_adds).split_with_sizes({cls_rows, token_rows});
  };
  const std::vector<at::Tensor> queries = project(query), keys = project(key), values = project(value);
  const at::Tensor window_keys = window_norm(keys[1]), window_values = window_norm(values[1]);

  SharedVectors shared = Landmarks(tokens, window_keys, window_values, batch, multiply_adds);
  if (has_cls) {
    shared.keys = at::cat({keys[0].unsqueeze(1), shared.keys}, 1);
    shared.values = at::cat({values[0].unsqueeze(1), shared.values}, 1);
  }
  at::Tensor attended = AttendDocuments(batch.packed, heads, queries[1] * scale, window_keys, window_values,
                                        shared_norm(shared.keys), shared_norm(shared.values));
  multiply_adds += AttentionMultiplyAdds(*batch.packed, shared.keys.size(1), tokens.size(1));
  // CLS reads what the tokens attended to, before the convolution, and its own key and value without shared_norm.
  at::Tensor cls_attended;
  if (has_cls) cls_attended = AttendFromCls(queries[0] * scale, keys[0], values[0], attended, batch, multiply_adds);
  if (cls_only) return {.tokens = {}, .cls = Finish(hidden.cls, cls_attended, multiply_adds)};

  if (value_taps.defined()) attended = attended + Convolve(window_values, batch, multiply_adds);
  if (!has_cls) return {.tokens = Finish(hidden.tokens, attended, multiply_adds), .cls = {}};
  const std::vector<at::Tensor> finished =
      Finish(at::cat({hidden.cls, hidden.tokens}), at::cat({cls_attended, attended}), multiply_adds)
          .split_with_sizes({cls_rows, token_rows});
  return {.tokens = finished[1], .cls = finished[0]};
}

at::Tensor TextLayer::Apply(const Linear& map, const at::Tensor& rows, int64_t& multiply_adds) const {
  multiply_adds += rows.size(0) * map.weight.numel();
  return map(rows);
}

TextLayer::SharedVectors TextLayer::Landmarks(const at::Tensor& input, const at::Tensor& keys, const at::Tensor& values,
                                              const DocumentBatch& batch, int64_t& multiply_adds) const {
  if (!dynamic_projection.weight.defined()) {
    const at::Tensor none = at::empty({batch.documents(), 0, keys.size(1)}, keys.options());
    return {.keys = none, .values = none};
  }
  const std::vector<at::Tensor> logits =
      Apply(dynamic_projection, input, multiply_adds).split_with_sizes(batch.lengths);
  const std::vector<at::Tensor> key_rows = keys.split_with_sizes(batch.lengths);
  const std::vector<at::Tensor> value_rows = values.split_with_sizes(batch.lengths);
  const auto by_head = [this](const at::Tensor& rows) { return rows.unflatten(1, {heads, -1}).transpose(0, 1); };
  std::vector<at::Tensor> landmark_keys, landmark_values;
  for (size_t i = 0; i < logits.size(); ++i) {
    // A softmax over the document's rows, for each head and landmark: [heads, rank, rows].
    const at::Tensor weights = by_head(logits[i].softmax(0)).transpose(1, 2);
    landmark_keys.push_back(at::matmul(weights, by_head(key_rows[i])).transpose(0, 1).flatten(1));
    landmark_values.push_back(at::matmul(weights, by_head(value_rows[i])).transpose(0, 1).flatten(1));
  }
  multiply_adds += 2 * keys.numel() * (dynamic_projection.weight.size(0) / heads);
  return {.keys = at::stack(landmark_keys), .values = at::stack(landmark_values)};
}

at::Tensor TextLayer::AttendFromCls(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                    const at::Tensor& attended, const DocumentBatch& batch,
                                    int64_t& multiply_adds) const {
  const std::vector<at::Tensor> document_rows = attended.split_with_sizes(batch.lengths);
  // [documents][heads, 1, head_dim]
  const auto by_document = [this](const at::Tensor& rows) { return rows.view({rows.size(0), heads, 1, -1}).unbind(0); };
  const std::vector<at::Tensor> q = by_document(queries), k = by_document(keys), v = by_document(values);
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < document_rows.size(); ++i) {
    const at::Tensor rows = document_rows[i].unflatten(1, {heads, -1}).transpose(0, 1);
    const at::Tensor weights = at::matmul(q[i], at::cat({k[i], rows}, 1).transpose(1, 2)).softmax(-1);
    results.push_back(at::matmul(weights, at::cat({v[i], rows}, 1)).flatten());
  }
  multiply_adds += 2 * (attended.numel() + queries.numel());
  return at::stack(results);
}

at::Tensor TextLayer::Convolve(const at::Tensor& values, const DocumentBatch& batch, int64_t& multiply_adds) const {
  multiply_adds += ConvolvedPairs(*batch.packed, value_taps.size(1)) * values.size(1);
  return ConvolveValues(*batch.packed, values.unflatten(1, {heads, -1}), value_taps).flatten(1);
}

at::Tensor TextLayer::Finish(const at::Tensor& rows, const at::Tensor& attended, int64_t& multiply_adds) const {
  const at::Tensor middle = rows + Apply(output, attended, multiply_adds);
  const at::Tensor inner = at::gelu(Apply(feed_forward_in, norm2(middle), multiply_adds));
  return middle + Apply(feed_forward_out, inner, multiply_adds);
}

}  // namespace longshort
