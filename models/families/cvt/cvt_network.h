// The network of CvT*-LS: its weights as tensors, and its forward pass, for serving and training.
#pragma once

#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/families/cvt/cvt_attention.h"
#include "models/families/cvt/cvt_config.h"
#include "models/load_options.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Pre-norm: t = t + attention(norm1(t)), then t = t + feed_forward(norm2(t)).
struct CvtBlock {
  LayerNorm norm1, norm2;
  CvtAttention attention;
  FeedForward feed_forward;

  // tokens [batch, height * width, d] -> the same shape.
  at::Tensor operator()(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics,
                        ItemAttention& item_attention) const;
};

// Cuts an image into overlapping patches, one token each.
struct CvtEmbedding {
  at::Tensor kernel;  // [d, channels, k, k]
  at::Tensor bias;    // [d]
  int64_t stride = 1;
  int64_t padding = 0;  // zeros on each side
  LayerNorm norm;

  // image [batch, channels, height, width] -> [batch, d, height', width'], normalised over d.
  at::Tensor operator()(const at::Tensor& image) const;
};

struct CvtStageLayers {
  CvtEmbedding embedding;
  std::vector<CvtBlock> blocks;

  // image [batch, channels, height, width] -> [batch, d, height', width'].
  at::Tensor operator()(const at::Tensor& image, BatchStatistics* statistics, ItemAttention& item_attention) const;
};

struct CvtNetwork {
  std::vector<CvtStageLayers> stages;
  LayerNorm norm;
  Linear head;

  // images [batch, channels, height, width], normalised, of a size that CheckCvtImageSize accepts -> what the head
  // reads, [batch, width], of the weights' type. In serving and evaluation (`statistics` is null), batch norms use
  // their running statistics. In training, each uses the batch's statistics and appends them to `statistics`, for
  // UpdateRunningStatistics. The network does not change, so threads may share it.
  at::Tensor Features(const at::Tensor& images, BatchStatistics* statistics, ItemAttention& item_attention) const;
  // The logits, [batch, classes], with CpuItemAttention. Differentiable.
  at::Tensor Logits(const at::Tensor& images, BatchStatistics* statistics) const;

  // Moves the running statistics towards those of one pass: running = (1 - momentum) * running + momentum * batch.
  // Changes the network's tensors in place.
  void UpdateRunningStatistics(const BatchStatistics& statistics, double momentum) const;

  // Performs the computations that do not depend on images once: weight standardisation, and folding the batch norms'
  // running statistics. Logits stay the same up to rounding. The network can no longer be trained.
  void PrepareForServing();

  // REQUIRES: PrepareForServing was called.
  void MoveBy(TensorMove& move);
};

// Builds the network from `tensor`, which returns each stored tensor by its name in model.safetensors, with its shape
// in CvtTensors. Values are not copied.
CvtNetwork MakeCvtNetwork(const CvtConfig& config, const TensorSource& tensor);

// Loads a CvT*-LS for serving. It accepts images of any size that CheckCvtImageSize accepts.
// Errors: those of ParseCvtConfig, CheckTensors and LoadServedClassifier; INTERNAL if LibTorch fails.
absl::StatusOr<ClassifierWeights> LoadCvt(const ModelDirectory& directory, const LoadOptions& options);

}  // namespace longshort::models
