// Depthwise-separable convolutions over a grid of tokens, as CvT projects with them: each channel by itself along the
// grid, then all channels of each token.
#pragma once

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/attention/long_short_attention_2d.h"
#include "models/layers/linear.h"

namespace longshort::models {

// What batch norms saw of one batch: an entry for each norm, in the order of use. Each tensor [d], without gradient.
struct BatchStatistics {
  std::vector<at::Tensor> means;
  std::vector<at::Tensor> variances;  // unbiased
};

// Batch normalisation of each channel.
struct BatchNorm {
  at::Tensor gain;              // [d]
  at::Tensor bias;              // [d]
  at::Tensor running_mean;      // [d]
  at::Tensor running_variance;  // [d]
  double epsilon = 1e-5;

  // image [batch, d, height, width], the same out. Serving (`statistics` is null) normalises by the running statistics;
  // training by those of this very batch, which it appends to `statistics`.
  at::Tensor operator()(const at::Tensor& image, BatchStatistics* statistics) const;
};

// A depthwise convolution (odd kernel, stride 1, zeros around the grid), a batch norm if there is one, a pointwise
// convolution.
struct SeparableConvolution {
  at::Tensor kernel;  // [d, 1, k, k]
  at::Tensor bias;    // [d]
  // With an epsilon, the kernel is standardised before use.
  std::optional<double> standardization_epsilon;
  std::optional<BatchNorm> norm;
  Linear pointwise;  // [out, d]

  // tokens [batch, height * width, d] -> [batch, height * width, out]. `statistics` as BatchNorm takes them.
  at::Tensor operator()(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics) const;

  // Does once what does not depend on tokens: standardises the kernel, folds the running statistics into the depthwise
  // convolution. What it computes stays the same up to rounding; it can no longer be trained.
  void PrepareForServing();
};

// Weight standardisation: (kernel - mean) / (deviation + epsilon), each channel over its taps, the deviation unbiased.
// Shapes [d, 1, k, k]; k > 1, or the deviation of the only tap counts as 0.
at::Tensor StandardizedKernel(const at::Tensor& kernel, double epsilon);

}  // namespace longshort::models
