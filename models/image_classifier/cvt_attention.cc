#include "models/image_classifier/cvt_attention.h"

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

at::Tensor CvtAttention::operator()(const at::Tensor& tokens, const TokenGrid& grid,
                                    BatchStatistics* statistics) const {
  const double head_dim = static_cast<double>(tokens.size(2)) / static_cast<double>(heads);
  const at::Tensor queries = SplitHeads(query(tokens, grid, statistics) / std::sqrt(head_dim), heads);
  const at::Tensor keys = SplitHeads(local_key_norm(key(tokens, grid, statistics)), heads);
  const at::Tensor values = SplitHeads(local_value_norm(value(tokens, grid, statistics)), heads);

  // P of equation 3, [batch, heads, r, tokens]: a softmax over the tokens.
  const at::Tensor logits = projection(tokens, grid, statistics);
  const at::Tensor mixing = logits.unflatten(2, {heads, -1}).permute({0, 2, 3, 1}).softmax(-1);
  const auto landmarks = [&](const at::Tensor& rows, const LayerNorm& norm) {
    return SplitHeads(norm(JoinHeads(at::matmul(mixing, rows))), heads);
  };
  const KeyValues shared = {landmarks(keys, landmark_key_norm), landmarks(values, landmark_value_norm)};
  return output(JoinHeads(LongShortAttention2d(queries, {keys, values}, shared, grid, window, {})));
}

void CvtAttention::PrepareForServing() {
  for (SeparableConvolution* convolution : {&query, &key, &value, &projection}) convolution->PrepareForServing();
}

std::vector<const BatchNorm*> CvtAttention::BatchNorms() const {
  std::vector<const BatchNorm*> norms;
  for (const SeparableConvolution* convolution : {&query, &key, &value, &projection}) {
    if (convolution->norm) norms.push_back(&*convolution->norm);
  }
  return norms;
}

}  // namespace longshort
