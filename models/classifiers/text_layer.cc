#include "models/classifiers/text_layer.h"

#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/document_attention.h"
#include "models/attention/long_short_attention_1d.h"

namespace longshort::models {
namespace {

at::Tensor Normed(const LayerNorm& norm, const at::Tensor& rows) { return norm.gain.defined() ? norm(rows) : rows; }
RowKeyValues Normed(const LayerNorm& norm, const RowKeyValues& rows) {
  return {.keys = Normed(norm, rows.keys), .values = Normed(norm, rows.values)};
}

}  // namespace

HiddenRows TextLayer::operator()(const HiddenRows& hidden, int64_t documents, ItemAttention& attention,
                                 bool cls_only) const {
  const bool has_cls = hidden.cls_rows > 0;
  const HiddenRows input = AttentionInput(hidden);
  const auto project = [&](const Linear& map) { return HiddenRows{map(input.all), hidden.cls_rows}; };
  const HiddenRows keys = project(key), values = project(value);
  const RowKeyValues window = Normed(window_norm, {.keys = keys.tokens(), .values = values.tokens()});
  RowKeyValues own_cls, shared_cls;
  if (has_cls) {
    own_cls = {.keys = keys.cls(), .values = values.cls()};
    shared_cls = Normed(shared_norm, own_cls);
  }
  if (cls_only && cls_sees_keys) {  // no output of a token is read
    const at::Tensor queries = query(input.cls()), attended = at::empty(queries.sizes(), queries.options());
    attention.AttendToRows(
        {.heads = heads, .queries = queries, .own = shared_cls, .rows = window, .attended = attended});
    return {Finish(hidden.cls(), attended), hidden.cls_rows};
  }

  const HiddenRows queries = project(query);
  const RowKeyValues shared = SharedVectors(input.tokens(), window, shared_cls, documents, attention);
  const HiddenRows attended = {
      attention.AttendInDocuments({.heads = heads, .queries = queries.tokens(), .tokens = window, .shared = shared},
                                  hidden.cls_rows),
      hidden.cls_rows};
  if (has_cls) {
    OwnRowsToAttend cls{
        .heads = heads, .queries = queries.cls(), .own = shared_cls, .rows = window, .attended = attended.cls()};
    if (!cls_sees_keys) {
      cls.own = std::move(own_cls);
      cls.rows = {.keys = attended.tokens(), .values = attended.tokens()};
    }
    attention.AttendToRows(cls);
  }
  if (cls_only) return {Finish(hidden.cls(), attended.cls()), hidden.cls_rows};
  if (value_taps.defined()) {
    attention.ConvolveValues({.heads = heads, .taps = value_taps, .values = window.values, .sums = attended.tokens()});
  }
  return {Finish(hidden.all, attended.all), hidden.cls_rows};
}

void TextLayer::MoveBy(TensorMove& move) {
  move(norm1, norm2, query, key, value, output, window_norm, dynamic_projection, value_taps);
  move(feed_forward_in, feed_forward_out);
  move.AsTheyAre(shared_norm);  // kernels read it in its stored type
}

int64_t TextLayer::MultiplyAdds(const PackedDocuments& packed, bool has_cls, bool cls_only) const {
  const int64_t width = output.inputs(), tokens = packed.rows();
  const int64_t cls = has_cls ? static_cast<int64_t>(packed.documents.size()) : 0;
  const bool tokens_attend = !(cls_only && cls_sees_keys);
  int64_t done = (cls + tokens) * (key.multiply_adds() + value.multiply_adds());
  done += (tokens_attend ? cls + tokens : cls) * query.multiply_adds();
  if (has_cls) done += 2 * (tokens + cls) * width;
  if (tokens_attend) {
    int64_t shared = has_cls ? 1 : 0;
    if (dynamic_projection.defined()) {
      const int64_t rank = dynamic_projection.outputs() / heads;
      done += tokens * (dynamic_projection.multiply_adds() + 2 * rank * width);
      shared += rank;
    }
    done += AttentionMultiplyAdds(packed, shared, width);
  }
  if (!cls_only && value_taps.defined()) done += ConvolvedPairs(packed, value_taps.size(1)) * width;
  const int64_t finished = cls_only ? cls : cls + tokens;
  return done +
         finished * (output.multiply_adds() + feed_forward_in.multiply_adds() + feed_forward_out.multiply_adds());
}

HiddenRows TextLayer::AttentionInput(const HiddenRows& hidden) const {
  if (norms_after) return hidden;
  if (hidden.cls_rows == 0 || normalized_cls) return {norm1(hidden.all), hidden.cls_rows};
  return {at::cat({hidden.cls(), norm1(hidden.tokens())}), hidden.cls_rows};
}

RowKeyValues TextLayer::SharedVectors(const at::Tensor& input, const RowKeyValues& tokens, const RowKeyValues& cls,
                                      int64_t documents, ItemAttention& attention) const {
  const bool has_cls = cls.keys.defined();
  if (!dynamic_projection.defined()) {
    const auto vectors = [&](const at::Tensor& of_cls) {
      return has_cls ? of_cls.unsqueeze(1) : at::empty({documents, 0, input.size(1)}, input.options());
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
    shared.keys.select(1, 0).copy_(cls.keys);
    shared.values.select(1, 0).copy_(cls.values);
  }
  return shared;
}

at::Tensor TextLayer::Finish(const at::Tensor& rows, const at::Tensor& attended) const {
  const auto feed_forward = [this](const at::Tensor& input) { return feed_forward_out(feed_forward_in.Gelu(input)); };
  const at::Tensor sum = output(attended).add_(rows);
  if (!norms_after) return feed_forward(norm2(sum)).add_(sum);
  const at::Tensor middle = norm1(sum);
  return norm2(feed_forward(middle).add_(middle));
}

}  // namespace longshort::models
