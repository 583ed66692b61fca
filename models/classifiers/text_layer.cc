#include "models/classifiers/text_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/long_short_attention_1d.h"
#include "models/classifiers/document_attention.h"

namespace longshort {
namespace {

at::Tensor IntegerTensor(const std::vector<int64_t>& values, const at::Device& device) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor.to(device);
}

}  // namespace

DocumentBatch MakeDocumentBatch(std::shared_ptr<const PackedDocuments> packed, const at::Device& device) {
  DocumentBatch batch = {.ids = IntegerTensor(packed->ids, device),
                         .positions = IntegerTensor(packed->positions, device),
                         .documents = static_cast<int64_t>(packed->documents.size())};
  batch.lengths = packed->Lengths();
  batch.packed = std::move(packed);
  return batch;
}

HiddenRows TextLayer::operator()(const HiddenRows& hidden, const DocumentBatch& batch, bool cls_only) const {
  const bool has_cls = hidden.cls.defined();
  const int64_t cls_rows = has_cls ? batch.documents : 0, token_rows = batch.ids.size(0);

  const at::Tensor tokens = norm1(hidden.tokens);
  // All rows, those of CLS first: one product per weight.
  const at::Tensor input = has_cls ? at::cat({normalized_cls ? norm1(hidden.cls) : hidden.cls, tokens}) : tokens;
  const auto project = [&](const Linear& map) { return map(input).split_with_sizes({cls_rows, token_rows}); };
  const std::vector<at::Tensor> queries = project(query), keys = project(key), values = project(value);
  const RowKeyValues window = {.keys = window_norm(keys[1]), .values = window_norm(values[1])};
  RowKeyValues cls;
  if (has_cls) cls = {.keys = keys[0], .values = values[0]};

  const RowKeyValues shared = SharedVectors(tokens, window, cls, batch);
  at::Tensor attended = AttendFromTokens(queries[1], window, shared, batch);
  // CLS reads what the tokens attended to, before the convolution, and its own key and value without shared_norm.
  at::Tensor cls_attended;
  if (has_cls) cls_attended = AttendFromCls(queries[0], cls, attended, batch);
  if (cls_only) return {.tokens = {}, .cls = Finish(hidden.cls, cls_attended)};

  if (value_taps.defined()) AddConvolved(window.values, attended, batch);
  if (!has_cls) return {.tokens = Finish(hidden.tokens, attended), .cls = {}};
  const std::vector<at::Tensor> finished =
      Finish(at::cat({hidden.cls, hidden.tokens}), at::cat({cls_attended, attended}))
          .split_with_sizes({cls_rows, token_rows});
  return {.tokens = finished[1], .cls = finished[0]};
}

void TextLayer::MoveBy(TensorMove& move) {
  move(norm1, norm2, query, key, value, output, window_norm, dynamic_projection, value_taps);
  move(feed_forward_in, feed_forward_out);
  move.AsTheyAre(shared_norm);  // kernels read it
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
                                      const DocumentBatch& batch) const {
  const bool has_cls = cls.keys.defined();
  RowKeyValues landmarks;
  if (dynamic_projection.weight.defined()) {
    const at::Tensor logits = dynamic_projection(input);
    if (batch.attention != nullptr) {
      RowKeyValues shared = batch.attention->Landmarks(
          {.heads = heads, .logits = logits, .tokens = tokens, .key_norm = shared_norm, .value_norm = shared_norm},
          /*others=*/has_cls ? 1 : 0);
      if (has_cls) {
        shared.keys.select(1, 0).copy_(shared_norm(cls.keys));
        shared.values.select(1, 0).copy_(shared_norm(cls.values));
      }
      return shared;
    }
    landmarks = Landmarks(logits, tokens, batch);
  } else {
    landmarks.keys = landmarks.values = at::empty({batch.documents, 0, tokens.keys.size(1)}, tokens.keys.options());
  }
  const auto normed = [&](const at::Tensor& of_cls, const at::Tensor& of_landmarks) {
    return shared_norm(has_cls ? at::cat({of_cls.unsqueeze(1), of_landmarks}, 1) : of_landmarks);
  };
  return {.keys = normed(cls.keys, landmarks.keys), .values = normed(cls.values, landmarks.values)};
}

RowKeyValues TextLayer::Landmarks(const at::Tensor& logits, const RowKeyValues& tokens,
                                  const DocumentBatch& batch) const {
  const std::vector<at::Tensor> logit_rows = logits.split_with_sizes(batch.lengths);
  const std::vector<at::Tensor> key_rows = tokens.keys.split_with_sizes(batch.lengths);
  const std::vector<at::Tensor> value_rows = tokens.values.split_with_sizes(batch.lengths);
  const auto by_head = [this](const at::Tensor& rows) { return rows.unflatten(1, {heads, -1}).transpose(0, 1); };
  std::vector<at::Tensor> keys, values;
  for (size_t i = 0; i < logit_rows.size(); ++i) {
    // A softmax over the document's rows, for each head and landmark: [heads, rank, rows].
    const at::Tensor weights = by_head(logit_rows[i].softmax(0)).transpose(1, 2);
    keys.push_back(at::matmul(weights, by_head(key_rows[i])).transpose(0, 1).flatten(1));
    values.push_back(at::matmul(weights, by_head(value_rows[i])).transpose(0, 1).flatten(1));
  }
  return {.keys = at::stack(keys), .values = at::stack(values)};
}

at::Tensor TextLayer::AttendFromTokens(const at::Tensor& queries, const RowKeyValues& tokens,
                                       const RowKeyValues& shared, const DocumentBatch& batch) const {
  if (batch.attention == nullptr) {
    return AttendDocuments(batch.packed, heads, queries * QueryScale(queries), tokens.keys, tokens.values, shared.keys,
                           shared.values);
  }
  at::Tensor attended = at::empty(queries.sizes(), queries.options());
  batch.attention->AttendInDocuments(
      {.heads = heads, .queries = queries, .tokens = tokens, .shared = shared, .attended = attended});
  return attended;
}

at::Tensor TextLayer::AttendFromCls(const at::Tensor& queries, const RowKeyValues& cls, const at::Tensor& attended,
                                    const DocumentBatch& batch) const {
  if (batch.attention != nullptr) {
    at::Tensor cls_attended = at::empty(queries.sizes(), queries.options());
    batch.attention->AttendToRows(
        {.heads = heads, .queries = queries, .own = cls, .rows = attended, .attended = cls_attended});
    return cls_attended;
  }
  const std::vector<at::Tensor> document_rows = attended.split_with_sizes(batch.lengths);
  // [documents][heads, 1, head_dim]
  const auto by_document = [this](const at::Tensor& rows) { return rows.view({rows.size(0), heads, 1, -1}).unbind(0); };
  const std::vector<at::Tensor> q = by_document(queries * QueryScale(queries)), k = by_document(cls.keys),
                                v = by_document(cls.values);
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < document_rows.size(); ++i) {
    const at::Tensor rows = document_rows[i].unflatten(1, {heads, -1}).transpose(0, 1);
    const at::Tensor weights = at::matmul(q[i], at::cat({k[i], rows}, 1).transpose(1, 2)).softmax(-1);
    results.push_back(at::matmul(weights, at::cat({v[i], rows}, 1)).flatten());
  }
  return at::stack(results);
}

double TextLayer::QueryScale(const at::Tensor& queries) const {
  return 1 / std::sqrt(static_cast<double>(queries.size(1)) / static_cast<double>(heads));
}

void TextLayer::AddConvolved(const at::Tensor& values, at::Tensor& attended, const DocumentBatch& batch) const {
  if (batch.attention != nullptr) {
    batch.attention->ConvolveValues({.heads = heads, .taps = value_taps, .values = values, .sums = attended});
    return;
  }
  attended = attended + ConvolveValues(*batch.packed, values.unflatten(1, {heads, -1}), value_taps).flatten(1);
}

at::Tensor TextLayer::Finish(const at::Tensor& rows, const at::Tensor& attended) const {
  const at::Tensor middle = rows + output(attended);
  const at::Tensor inner = at::gelu(feed_forward_in(norm2(middle)));
  return middle + feed_forward_out(inner);
}

}  // namespace longshort
