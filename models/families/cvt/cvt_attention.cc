#include "models/families/cvt/cvt_attention.h"

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

at::Tensor BatchNorm::operator()(const at::Tensor& image, BatchStatistics* statistics) const {
  if (statistics == nullptr) {
    return at::batch_norm(image, gain, bias, running_mean, running_variance, /*training=*/false, /*momentum=*/0.0,
                          epsilon, /*cudnn_enabled=*/false);
  }
  // With momentum 1, the running statistics become those of the batch.
  const at::Tensor mean = at::zeros_like(running_mean), variance = at::zeros_like(running_variance);
  statistics->means.push_back(mean);
  statistics->variances.push_back(variance);
  return at::batch_norm(image, gain, bias, mean, variance, /*training=*/true, /*momentum=*/1.0, epsilon,
                        /*cudnn_enabled=*/false);
}

at::Tensor StandardizedKernel(const at::Tensor& kernel, double epsilon) {
  const at::Tensor centred = kernel - kernel.mean({1, 2, 3}, /*keepdim=*/true);
  const int64_t taps = kernel.size(2) * kernel.size(3);
  if (taps == 1) return centred / epsilon;
  const at::Tensor variance = centred.square().sum({1, 2, 3}, /*keepdim=*/true) / static_cast<double>(taps - 1);
  return centred / (variance.sqrt() + epsilon);
}

at::Tensor SeparableConvolution::operator()(const at::Tensor& tokens, const TokenGrid& grid,
                                            BatchStatistics* statistics) const {
  // A view: the memory layout stays a list of tokens.
  const at::Tensor image = tokens.unflatten(1, {grid.height, grid.width}).permute({0, 3, 1, 2});
  const at::Tensor taps = standardization_epsilon ? StandardizedKernel(kernel, *standardization_epsilon) : kernel;
  const int64_t padding = kernel.size(2) / 2, channels = kernel.size(0);
  at::Tensor convolved = at::conv2d(image, taps, bias, 1, padding, 1, channels);
  if (norm) convolved = (*norm)(convolved, statistics);
  return pointwise(convolved.permute({0, 2, 3, 1}).flatten(1, 2));
}

void SeparableConvolution::PrepareForServing() {
  if (standardization_epsilon) kernel = StandardizedKernel(kernel, *standardization_epsilon);
  standardization_epsilon.reset();
  if (!norm) return;
  const auto in_double = [](const at::Tensor& tensor) { return tensor.to(at::kDouble); };
  const at::Tensor scale = in_double(norm->gain) / (in_double(norm->running_variance) + norm->epsilon).sqrt();
  const at::Tensor shifted = in_double(bias) - in_double(norm->running_mean);
  kernel = (in_double(kernel) * scale.view({-1, 1, 1, 1})).to(kernel.scalar_type());
  bias = (shifted * scale + in_double(norm->bias)).to(bias.scalar_type());
  norm.reset();
}

at::Tensor CvtAttention::Attended(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics,
                                  ItemAttention& item_attention) const {
  const at::Tensor queries = query(tokens, grid, statistics), keys = key(tokens, grid, statistics);
  const at::Tensor values = value(tokens, grid, statistics);
  const RowKeyValues local =
      item_attention.NormBoth(local_key_norm, local_value_norm, {.keys = keys, .values = values});
  const RowKeyValues landmarks = item_attention.Landmarks({.heads = heads,
                                                           .logits = projection(tokens, grid, statistics),
                                                           .tokens = local,
                                                           .key_norm = landmark_key_norm,
                                                           .value_norm = landmark_value_norm},
                                                          /*before=*/{});
  return item_attention.AttendInGrids({.heads = heads, .queries = queries, .tokens = local, .shared = landmarks}, grid,
                                      window, /*bias=*/{}, /*others=*/0);
}

void CvtAttention::PrepareForServing() {
  for (SeparableConvolution* convolution : {&query, &key, &value, &projection}) convolution->PrepareForServing();
}

void CvtAttention::MoveBy(TensorMove& move) {
  for (SeparableConvolution* convolution : {&query, &key, &value, &projection}) {
    move(convolution->kernel, convolution->bias, convolution->pointwise);
  }
  move(output);
  // Kernels read them.
  move.AsTheyAre(local_key_norm, local_value_norm, landmark_key_norm, landmark_value_norm);
}

std::vector<const BatchNorm*> CvtAttention::BatchNorms() const {
  std::vector<const BatchNorm*> norms;
  for (const SeparableConvolution* convolution : {&query, &key, &value, &projection}) {
    if (convolution->norm) norms.push_back(&*convolution->norm);
  }
  return norms;
}

}  // namespace longshort::models
