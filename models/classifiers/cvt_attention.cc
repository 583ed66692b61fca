#include "models/classifiers/cvt_attention.h"

#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort {
namespace {

// [batch, rows, heads * head_dim] -> [batch, heads, rows, head_dim].
at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads) {
  return rows.unflatten(2, {heads, -1}).transpose(1, 2).contiguous();
}

// The inverse.
at::Tensor JoinHeads(const at::Tensor& by_head) { return by_head.transpose(1, 2).flatten(2); }

}  // namespace

at::Tensor CvtAttention::operator()(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics,
                                    ItemAttention* item_attention) const {
  const at::Tensor queries = query(tokens, grid, statistics), keys = key(tokens, grid, statistics);
  const at::Tensor values = value(tokens, grid, statistics);
  const Projected projected = {.queries = queries,
                               .keys = local_key_norm(keys),
                               .values = local_value_norm(values),
                               .logits = projection(tokens, grid, statistics)};
  return output(item_attention == nullptr ? Attend(projected, grid) : AttendBy(*item_attention, projected, grid));
}

at::Tensor CvtAttention::Attend(const Projected& projected, const TokenGrid& grid) const {
  const double head_dim = static_cast<double>(projected.queries.size(2)) / static_cast<double>(heads);
  const at::Tensor queries = SplitHeads(projected.queries / std::sqrt(head_dim), heads);
  const at::Tensor keys = SplitHeads(projected.keys, heads), values = SplitHeads(projected.values, heads);

  // P of equation 3, [batch, heads, r, tokens]: a softmax over the tokens.
  const at::Tensor mixing = projected.logits.unflatten(2, {heads, -1}).permute({0, 2, 3, 1}).softmax(-1);
  const auto landmarks = [&](const at::Tensor& rows, const LayerNorm& norm) {
    return SplitHeads(norm(JoinHeads(at::matmul(mixing, rows))), heads);
  };
  const KeyValues shared = {landmarks(keys, landmark_key_norm), landmarks(values, landmark_value_norm)};
  return JoinHeads(LongShortAttention2d(queries, {keys, values}, shared, grid, window, {}));
}

at::Tensor CvtAttention::AttendBy(ItemAttention& item_attention, const Projected& projected,
                                  const TokenGrid& grid) const {
  const RowKeyValues tokens = {.keys = projected.keys, .values = projected.values};
  const RowKeyValues shared = item_attention.Landmarks({.heads = heads,
                                                        .logits = projected.logits,
                                                        .tokens = tokens,
                                                        .key_norm = landmark_key_norm,
                                                        .value_norm = landmark_value_norm},
                                                       /*others=*/0);
  at::Tensor attended = at::empty(tokens.keys.sizes(), tokens.keys.options());
  item_attention.AttendInGrids(
      {.heads = heads, .queries = projected.queries, .tokens = tokens, .shared = shared, .attended = attended}, grid,
      window, /*bias_table=*/{});
  return attended;
}

void CvtAttention::PrepareForServing() {
  for (SeparableConvolution* convolution : {&query, &key, &value, &projection}) convolution->PrepareForServing();
}

void CvtAttention::MoveBy(TensorMove& move) {
  for (SeparableConvolution* convolution : {&query, &key, &value, &projection}) {
    move(convolution->kernel, convolution->bias, convolution->pointwise);
  }
  move(local_key_norm, local_value_norm, output);
  move.AsTheyAre(landmark_key_norm, landmark_value_norm);  // kernels read them
}

std::vector<const BatchNorm*> CvtAttention::BatchNorms() const {
  std::vector<const BatchNorm*> norms;
  for (const SeparableConvolution* convolution : {&query, &key, &value, &projection}) {
    if (convolution->norm) norms.push_back(&*convolution->norm);
  }
  return norms;
}

}  // namespace longshort
