#include "models/families/cvt/cvt_attention.h"

#include "models/ops/layers/tensor_move.h"

namespace longshort::models {

at::Tensor CvtAttention::operator()(const at::Tensor& tokens, const at::Tensor& added, const TokenGrid& grid,
                                    BatchStatistics* statistics, ItemAttention& item_attention) const {
  const at::Tensor queries = query(tokens, grid, statistics), keys = key(tokens, grid, statistics);
  const at::Tensor values = value(tokens, grid, statistics);
  const RowKeyValues local = {.keys = local_key_norm(keys), .values = local_value_norm(values)};
  const RowKeyValues landmarks = item_attention.Landmarks({.heads = heads,
                                                           .logits = projection(tokens, grid, statistics),
                                                           .tokens = local,
                                                           .key_norm = landmark_key_norm,
                                                           .value_norm = landmark_value_norm},
                                                          /*others=*/0);
  return output(item_attention.AttendInGrids({.heads = heads, .queries = queries, .tokens = local, .shared = landmarks},
                                             grid, window, /*bias=*/{},
                                             /*others=*/0),
                added);
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

}  // namespace longshort::models
