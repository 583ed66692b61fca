// Long-short attention of CvT*-LS: separable convolutions instead of linear projections, the 2-D operation, DualLN.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// Depthwise-separable convolutions over a grid of tokens, the projections of CvT: first each channel along the grid,
// then all channels of each token.

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

struct CvtAttention {
  int64_t heads = 0;
  WindowGeometry window;
  SeparableConvolution query, key, value;  // to_q, to_k, to_v
  SeparableConvolution projection;         // to_dyn: computes heads * r channels, channel = head * r + column
  LayerNorm local_key_norm;                // ln_l
  LayerNorm local_value_norm;              // ln_l, or ln_l_v
  LayerNorm landmark_key_norm;             // ln_g
  LayerNorm landmark_value_norm;           // ln_g, or ln_g_v
  Linear output;                           // proj

  // tokens [batch, height * width, d], normalised -> the same shape, before `output`. `statistics` as BatchNorm takes
  // them.
  at::Tensor Attended(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics,
                      ItemAttention& item_attention) const;

  // As SeparableConvolution::PrepareForServing.
  void PrepareForServing();
  // REQUIRES: PrepareForServing was called.
  void MoveBy(TensorMove& move);
  // The batch norms in the order in which they append their statistics.
  std::vector<const BatchNorm*> BatchNorms() const;
};

}  // namespace longshort::models
