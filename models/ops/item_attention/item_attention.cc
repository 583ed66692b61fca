#include "models/ops/item_attention/item_attention.h"

#include <cmath>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "models/ops/cls_attention/cls_attention.h"
#include "models/ops/document_attention/document_attention.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/landmarks/dynamic_projection.h"

namespace longshort::models {
namespace {

// [..., n, heads * head_dim] -> [..., heads, n, head_dim], and back.
at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads) {
  return rows.unflatten(-1, {heads, -1}).transpose(-3, -2);
}
at::Tensor JoinHeads(const at::Tensor& by_head) { return by_head.transpose(-3, -2).flatten(-2); }

at::Tensor Scaled(const at::Tensor& queries, int64_t heads) {
  return queries * (1 / std::sqrt(static_cast<double>(queries.size(-1)) / static_cast<double>(heads)));
}

// Equation 3 of the paper over all rows of an item, or of each of several items with equally many rows: mixes the rows
// to R vectors with a softmax over the rows.
//   logits  [..., rows, heads * R]
//   rows    [..., rows, d] -> [..., R, d]
class Mixing final {
 public:
  Mixing(const at::Tensor& logits, int64_t heads)
      : heads_(heads), weights_(SplitHeads(logits.softmax(-2), heads).transpose(-2, -1)) {}

  at::Tensor operator()(const at::Tensor& rows) const {
    return JoinHeads(at::matmul(weights_, SplitHeads(rows, heads_)));
  }

 private:
  const int64_t heads_;
  const at::Tensor weights_;  // [..., heads, R, rows]
};

// Attention from one query of an item to its own key and value and to the item's rows.
//   queries, own           [..., 1, d]
//   rows                   [..., n, d]
//   returns                [..., 1, d]
at::Tensor AttendFromOne(int64_t heads, const at::Tensor& queries, const RowKeyValues& own, const RowKeyValues& rows) {
  const auto seen = [&](const at::Tensor& one, const at::Tensor& others) {
    return SplitHeads(at::cat({one, others}, -2), heads);
  };
  const at::Tensor scores = at::matmul(SplitHeads(queries, heads), seen(own.keys, rows.keys).transpose(-2, -1));
  return JoinHeads(at::matmul(scores.softmax(-1), seen(own.values, rows.values)));
}

// The same view of keys and values.
template <typename View>
RowKeyValues Views(const RowKeyValues& of, const View& view) {
  return {.keys = view(of.keys), .values = view(of.values)};
}

// Returns [items, 1 + n, d]: `before`, [items, d], then `vectors`, [items, n, d], or only these if `before` is
// undefined.
at::Tensor Behind(const at::Tensor& before, const at::Tensor& vectors) {
  if (!before.defined()) return vectors;
  const int64_t count = vectors.size(1);
  at::Tensor all = at::empty({vectors.size(0), 1 + count, vectors.size(2)}, vectors.options());
  all.narrow(1, 1, count).copy_(vectors);
  all.select(1, 0).copy_(before);
  return all;
}

}  // namespace

at::Tensor ItemAttention::Embed(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& position_table,
                                const at::Tensor& positions) {
  return at::embedding(table, ids).add_(at::embedding(position_table, positions));
}

at::Tensor ItemAttention::Add(const Linear& map, const at::Tensor& inputs, const at::Tensor& rows) {
  return map(inputs, rows);
}

at::Tensor ItemAttention::Gelu(const Linear& map, const at::Tensor& inputs) { return map.Gelu(inputs); }

at::Tensor ItemAttention::Norm(const LayerNorm& norm, const at::Tensor& rows) { return norm(rows); }

at::Tensor ItemAttention::NormBehind(const at::Tensor& others, const LayerNorm& norm, const at::Tensor& rows) {
  return at::cat({others, norm(rows)});
}

RowKeyValues ItemAttention::NormBoth(const LayerNorm& key_norm, const LayerNorm& value_norm, const RowKeyValues& rows) {
  return {.keys = key_norm(rows.keys), .values = value_norm(rows.values)};
}

at::Tensor CpuItemAttention::AttendInDocuments(const RowsToAttend& rows, int64_t others) {
  return AttendDocuments(packed_, rows.heads, rows.queries, rows.tokens.keys, rows.tokens.values, rows.shared.keys,
                         rows.shared.values, others, dropout_);
}

at::Tensor CpuItemAttention::AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid,
                                           const WindowGeometry& window, const WindowBias& bias, int64_t others) {
  const bool can_use_kernel = CanAttendGrids(rows, window);
  if (can_use_kernel && bias.for_kernel.defined()) return AttendGrids(rows, grid, window, bias.for_kernel, others);
  const at::Tensor window_bias = bias.table.defined() ? BiasOfPairs(bias.table, bias.index) : at::Tensor();
  if (can_use_kernel) {
    const at::Tensor for_kernel = window_bias.defined() ? WithVectorBehind(window_bias) : window_bias;
    return AttendGrids(rows, grid, window, for_kernel, others);
  }
  const auto by_head = [&](const RowKeyValues& of) {
    return KeyValues{.keys = SplitHeads(of.keys, rows.heads), .values = SplitHeads(of.values, rows.heads)};
  };
  const at::Tensor attended =
      LongShortAttention2d(SplitHeads(Scaled(rows.queries, rows.heads), rows.heads), by_head(rows.tokens),
                           by_head(rows.shared), grid, window, window_bias);
  if (others == 0) return JoinHeads(attended);
  // Concatenates the rows in place: one copy, not two.
  at::Tensor all = at::empty({attended.size(0), others + grid.tokens(), rows.queries.size(2)}, attended.options());
  SplitHeads(all.narrow(1, others, grid.tokens()), rows.heads).copy_(attended);
  return all;
}

RowKeyValues CpuItemAttention::Landmarks(const RowsToCompress& rows, const RowKeyValues& before) {
  RowKeyValues mixed;
  if (rows.logits.dim() == 3) {
    const Mixing mix(rows.logits, rows.heads);
    mixed = {.keys = mix(rows.tokens.keys), .values = mix(rows.tokens.values)};
  } else if (c10::GradMode::is_enabled() && HaveVectorHeads(rows.heads, rows.tokens.keys)) {
    mixed = MixDocuments(packed_, rows.heads, rows.logits, rows.tokens);
  } else {
    std::vector<at::Tensor> keys, values;
    for (const PackedDocument& document : packed_->documents) {
      const auto of_document = [&](const at::Tensor& all) { return all.narrow(0, document.first_row, document.rows); };
      const Mixing mix(of_document(rows.logits), rows.heads);
      keys.push_back(mix(of_document(rows.tokens.keys)));
      values.push_back(mix(of_document(rows.tokens.values)));
    }
    mixed = {.keys = at::stack(keys), .values = at::stack(values)};
  }
  const auto behind = [&](const at::Tensor& first, const LayerNorm& norm, const at::Tensor& vectors) {
    return Behind(first.defined() && rows.norms_before ? norm(first) : first, norm(vectors));
  };
  return {.keys = behind(before.keys, rows.key_norm, mixed.keys),
          .values = behind(before.values, rows.value_norm, mixed.values)};
}

void CpuItemAttention::AttendToRows(const OwnRowsToAttend& rows) {
  const at::Tensor queries = Scaled(rows.queries, rows.heads);
  if (rows.rows.keys.dim() == 3) {
    const auto one = [](const at::Tensor& of_items) { return of_items.unsqueeze(1); };
    rows.attended.copy_(AttendFromOne(rows.heads, one(queries), Views(rows.own, one), rows.rows).squeeze(1));
    return;
  }
  if (c10::GradMode::is_enabled() && HaveVectorHeads(rows.heads, rows.rows.keys)) {
    rows.attended.copy_(AttendFromDocuments(packed_, rows.heads, queries, rows.own, rows.rows));
    return;
  }
  std::vector<at::Tensor> attended;
  for (int64_t i = 0; i < queries.size(0); ++i) {
    const PackedDocument& document = packed_->documents[i];
    const auto one = [i](const at::Tensor& of_items) { return of_items.narrow(0, i, 1); };
    const auto of_document = [&](const at::Tensor& all) { return all.narrow(0, document.first_row, document.rows); };
    attended.push_back(AttendFromOne(rows.heads, one(queries), Views(rows.own, one), Views(rows.rows, of_document)));
  }
  rows.attended.copy_(at::cat(attended));
}

void CpuItemAttention::ConvolveValues(const RowsToConvolve& rows) {
  const at::Tensor values = rows.values.unflatten(1, {rows.heads, -1});
  rows.sums.add_(longshort::models::ConvolveValues(*packed_, values, rows.taps).flatten(1));
}

at::Tensor CpuItemAttention::MeanOfRows(const at::Tensor& rows, int64_t length) {
  if (rows.dim() == 3) return rows.sum(1) / static_cast<double>(length);
  std::vector<at::Tensor> sums;
  for (const at::Tensor& document : rows.split_with_sizes(packed_->Lengths())) sums.push_back(document.sum(0));
  return at::stack(sums) / static_cast<double>(length);
}

DocumentTokens TokensOf(const PackedDocuments& packed, const at::Device& device) {
  const auto tensor = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::TensorOptions(at::kLong)).to(device);
  };
  return {.ids = tensor(packed.ids),
          .positions = tensor(packed.positions),
          .lengths = tensor(packed.Lengths()),
          .cls_ids = tensor(packed.cls_ids),
          .documents = static_cast<int64_t>(packed.documents.size())};
}

}  // namespace longshort::models
