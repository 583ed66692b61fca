#include "models/families/text_classifier/text_layer.h"

#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/document_attention/document_attention.h"
#include "models/ops/layer_halves/layer_halves.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

RowKeyValues Normed(const LayerNorm& norm, const RowKeyValues& rows, ItemAttention& attention) {
  return norm.gain.defined() ? attention.NormBoth(norm, norm, rows) : rows;
}

}  // namespace

void HiddenRows::Join() {
  if (first_cls.defined()) all = at::cat({first_cls, all});
  first_cls.reset();
}

HiddenRows TextLayer::operator()(HiddenRows hidden, int64_t documents, ItemAttention& attention, bool cls_only) const {
  if (!cls_only || norms_after || normalized_cls) hidden.Join();
  const bool has_cls = hidden.cls_rows > 0, only_keys = cls_only && cls_sees_keys;
  Projections rows = only_keys || !CanRunHalves(hidden.all, output, feed_forward.in)
                         ? Project(hidden, only_keys, attention)
                         : ProjectFused(hidden);
  const RowKeyValues& window = rows.window;
  // Landmarks norms the CLS vectors that only it reads.
  const bool norms_cls = has_cls && (cls_sees_keys || !dynamic_projection.defined());
  const RowKeyValues shared_cls = norms_cls ? Normed(shared_norm, rows.cls, attention) : rows.cls;
  const auto finished = [&](const at::Tensor& before, const at::Tensor& attended) -> HiddenRows {
    return {.all = Finish(before, attended, attention), .cls_rows = hidden.cls_rows};
  };
  if (only_keys) {  // no output of a token is read
    const at::Tensor attended = at::empty(rows.cls_queries.sizes(), rows.cls_queries.options());
    attention.AttendToRows(
        {.heads = heads, .queries = rows.cls_queries, .own = shared_cls, .rows = window, .attended = attended});
    return finished(hidden.cls(), attended);
  }

  const RowKeyValues shared = SharedVectors(rows.logits, window, shared_cls, documents, attention);
  // Without tokens behind them, the CLS rows need no place before the tokens' rows.
  const int64_t others = cls_only ? 0 : hidden.cls_rows;
  const HiddenRows attended = {
      attention.AttendInDocuments({.heads = heads, .queries = rows.queries, .tokens = window, .shared = shared},
                                  others),
      others};
  const at::Tensor attended_cls =
      cls_only ? at::empty(rows.cls_queries.sizes(), rows.cls_queries.options()) : attended.cls();
  if (has_cls) {
    OwnRowsToAttend cls{
        .heads = heads, .queries = rows.cls_queries, .own = shared_cls, .rows = window, .attended = attended_cls};
    if (!cls_sees_keys) {
      cls.own = std::move(rows.cls);
      cls.rows = {.keys = attended.tokens(), .values = attended.tokens()};
    }
    attention.AttendToRows(cls);
  }
  if (cls_only) return finished(hidden.cls(), attended_cls);
  if (value_taps.defined()) {
    attention.ConvolveValues({.heads = heads, .taps = value_taps, .values = window.values, .sums = attended.tokens()});
  }
  return finished(hidden.all, attended.all);
}

void TextLayer::MoveBy(TensorMove& move) {
  move(query, key, value, output, dynamic_projection, value_taps);
  feed_forward.MoveBy(move);
  move.AsTheyAre(norm1, norm2, window_norm, shared_norm);  // kernels read them in their stored type
  joined = dynamic_projection.defined() ? move.Join({&query, &key, &value, &dynamic_projection})
                                        : move.Join({&query, &key, &value});
}

int64_t TextLayer::MultiplyAdds(const DocumentCounts& batch, bool has_cls, bool cls_only) const {
  const int64_t width = output.inputs(), tokens = batch.rows;
  const int64_t cls = has_cls ? batch.documents : 0;
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
    done += AttentionMultiplyAdds(batch, shared, width);
  }
  if (!cls_only && value_taps.defined()) done += batch.convolved_pairs * width;
  const int64_t finished = cls_only ? cls : cls + tokens;
  return done +
         finished * (output.multiply_adds() + feed_forward.in.multiply_adds() + feed_forward.out.multiply_adds());
}

HiddenRows TextLayer::AttentionInput(const HiddenRows& hidden, ItemAttention& attention) const {
  if (norms_after) return hidden;
  const bool norms_all = hidden.cls_rows == 0 || normalized_cls;
  return {
      .all = norms_all ? attention.Norm(norm1, hidden.all) : attention.NormBehind(hidden.cls(), norm1, hidden.tokens()),
      .cls_rows = hidden.cls_rows};
}

TextLayer::Projections TextLayer::Project(const HiddenRows& hidden, bool only_keys, ItemAttention& attention) const {
  const HiddenRows input = AttentionInput(hidden, attention);
  const at::Tensor all = joined.defined() && !only_keys ? joined(input.all) : at::Tensor();
  int64_t read = 0;  // channels of `all`
  const auto project = [&](const Linear& map) {
    if (!all.defined()) return HiddenRows{map(input.all), hidden.cls_rows};
    const int64_t first = std::exchange(read, read + map.outputs());
    return HiddenRows{all.narrow(1, first, map.outputs()), hidden.cls_rows};
  };
  const HiddenRows queries = only_keys ? HiddenRows() : project(query);
  const HiddenRows keys = project(key), values = project(value);
  Projections rows{.queries = {},
                   .window = Normed(window_norm, {.keys = keys.tokens(), .values = values.tokens()}, attention),
                   .logits = {},
                   .cls_queries = {},
                   .cls = {}};
  if (hidden.cls_rows > 0) rows.cls = {.keys = keys.cls(), .values = values.cls()};
  if (only_keys) {
    rows.cls_queries = query(input.cls());
    return rows;
  }
  rows.queries = queries.tokens();
  rows.cls_queries = queries.cls();
  if (dynamic_projection.defined()) {
    rows.logits = all.defined() ? project(dynamic_projection).tokens() : dynamic_projection(input.tokens());
  }
  return rows;
}

TextLayer::Projections TextLayer::ProjectFused(const HiddenRows& hidden) const {
  const LayerNorm none;
  const ProjectedRows tokens =
      BeforeAttention{norms_after ? none : norm1, query, key, value, dynamic_projection, window_norm}(hidden.tokens());
  Projections rows{.queries = tokens.queries,
                   .window = {.keys = tokens.keys, .values = tokens.values},
                   .logits = tokens.logits,
                   .cls_queries = {},
                   .cls = {}};
  if (hidden.cls_rows > 0) {
    const at::Tensor cls = normalized_cls && !norms_after ? norm1(hidden.cls()) : hidden.cls();
    rows.cls_queries = query(cls);
    rows.cls = {.keys = key(cls), .values = value(cls)};
  }
  return rows;
}

RowKeyValues TextLayer::SharedVectors(const at::Tensor& logits, const RowKeyValues& tokens, const RowKeyValues& cls,
                                      int64_t documents, ItemAttention& attention) const {
  const bool has_cls = cls.keys.defined();
  if (!dynamic_projection.defined()) {
    const auto vectors = [&](const at::Tensor& of_cls) {
      return has_cls ? of_cls.unsqueeze(1) : at::empty({documents, 0, tokens.keys.size(1)}, tokens.keys.options());
    };
    return {.keys = vectors(cls.keys), .values = vectors(cls.values)};
  }
  return attention.Landmarks({.heads = heads,
                              .logits = logits,
                              .tokens = tokens,
                              .key_norm = shared_norm,
                              .value_norm = shared_norm,
                              .norms_before = !cls_sees_keys},
                             cls);
}

at::Tensor TextLayer::Finish(const at::Tensor& rows, const at::Tensor& attended, ItemAttention& attention) const {
  Dropout* const dropout = attention.dropout();
  if (dropout != nullptr && dropout->drops_rows()) {
    const auto feed = [&](const at::Tensor& from) {
      return Dropped(dropout, feed_forward.out(Dropped(dropout, feed_forward.in.Gelu(from))));
    };
    const at::Tensor sum = rows + Dropped(dropout, output(attended));
    if (!norms_after) return sum + feed(norm2(sum));
    const at::Tensor middle = norm1(sum);
    return norm2(middle + feed(middle));
  }
  if (CanRunHalves(rows, output, feed_forward.in)) {
    const at::Tensor sum = AfterAttention{output, norms_after ? norm1 : norm2, feed_forward.in, feed_forward.out,
                                          /*normed_residual=*/norms_after}(rows, attended);
    return norms_after ? norm2(sum) : sum;
  }
  const at::Tensor sum = attention.Add(output, attended, rows);
  const at::Tensor normed = attention.Norm(norms_after ? norm1 : norm2, sum);
  const at::Tensor fed =
      attention.Add(feed_forward.out, attention.Gelu(feed_forward.in, normed), norms_after ? normed : sum);
  return norms_after ? attention.Norm(norm2, fed) : fed;
}

}  // namespace longshort::models
