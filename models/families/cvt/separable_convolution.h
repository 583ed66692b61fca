// Depthwise-separable convolutions over a grid of tokens, the projections of CvT: first each channel along the grid,
// then all channels of each token.
#pragma once

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/ops/grid_attention/long_short_attention_2d.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// The batch norms' statistics of one batch: an entry for each norm, in the order of use. Each tensor is [d], without
// gradient.
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

  // image [batch, d, height, width] -> the same shape. Serving (`statistics` is null) normalises with the running
  // statistics. Training normalises with those of the batch, and appends them to `statistics`.
  at::Tensor operator()(const at::Tensor& image, BatchStatistics* statistics) const;
};

// A depthwise convolution (odd kernel, stride 1, zeros around the grid), an optional batch norm, and a pointwise
// convolution.
struct SeparableConvolution {
  at::Tensor kernel;  // [d, 1, k, k]
  at::Tensor bias;    // [d]
  // If set, the kernel is standardised before use.
  std::optional<double> standardization_epsilon;
  std::optional<BatchNorm> norm;
  Linear pointwise;  // [out, d]

  // tokens [batch, height * width, d] -> [batch, height * width, out]. `statistics` as in BatchNorm.
  at::Tensor operator()(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics) const;

  // Performs the computations that do not depend on tokens once: standardises the kernel, and folds the running
  // statistics into the depthwise convolution. Results stay the same up to rounding. The convolution can no longer be
  // trained.
  void PrepareForServing();
};

// Weight standardisation: (kernel - mean) / (deviation + epsilon), for each channel over its taps, with the unbiased
// deviation, which is 0 for k = 1. Shapes [d, 1, k, k].
at::Tensor StandardizedKernel(const at::Tensor& kernel, double epsilon);

}  // namespace longshort::models
