// The network of ViL-LS: its weights as tensors, and its forward pass. Differentiable.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/families/vil/vil_attention.h"
#include "models/families/vil/vil_config.h"
#include "models/load_options.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Attention, then feed-forward. Each reads normalised tokens and is added to the tokens.
struct VilPair {
  LayerNorm attention_norm;
  std::variant<VilSparseAttention, VilFullAttention> attention;
  LayerNorm feed_forward_norm;
  FeedForward feed_forward;

  // tokens [batch, g + patches, d] -> the same shape.
  at::Tensor operator()(const at::Tensor& tokens, ItemAttention& item_attention) const;

  void MoveBy(TensorMove& move);
};

// One resolution: cuts the previous stage's image into patches, and applies pairs to them.
struct VilStageNetwork {
  at::Tensor patch_weight;   // proj, [d, channels, p, p]
  at::Tensor patch_bias;     // [d]
  LayerNorm embedding_norm;  // for patches; undefined tensors: none
  at::Tensor global_tokens;  // cls_token, [1, g, d]; undefined: none
  // Absolute positions, added to the tokens; undefined with relative positions. cls_pos_embed [1, g, d] (undefined
  // without global tokens), x_pos_embed [1, n, d/2] for the row, y_pos_embed [1, n, d/2] for the column.
  at::Tensor global_positions, row_positions, column_positions;
  std::vector<VilPair> pairs;
  int64_t patch_size = 0;
  int64_t global_count = 0;  // g
  int64_t side = 0;          // n, the side of the grid

  // image [batch, channels, height, width] -> tokens [batch, g + n^2, d]. Pixels at the right and at the bottom that do
  // not fill a patch are ignored.
  at::Tensor operator()(const at::Tensor& image, ItemAttention& item_attention) const;
  // The patches of such tokens as the next stage's image: [batch, d, n, n].
  at::Tensor Image(const at::Tensor& tokens) const;

  void MoveBy(TensorMove& move);
};

struct VilNetwork {
  std::vector<VilStageNetwork> stages;
  LayerNorm norm;
  Linear head;
  bool pools_all_tokens = false;

  // images [batch, channels, image_size, image_size] -> what the head reads, [batch, width], of the weights' type.
  at::Tensor Features(const at::Tensor& images, ItemAttention& item_attention) const;

  void MoveBy(TensorMove& move);
};

// Builds the network from `tensor`, which returns each tensor by its name in model.safetensors, with its shape in
// VilTensors. Tensors are not copied, so gradients reach them.
VilNetwork MakeVilNetwork(const VilConfig& config, const TensorSource& tensor);

// Loads a ViL with long-short attention (ViL-LS) for serving. It accepts only images of image_size x image_size pixels.
// Errors: those of ParseVilConfig, CheckTensors and LoadServedClassifier; INTERNAL if LibTorch fails.
absl::StatusOr<ClassifierWeights> LoadVil(const ModelDirectory& directory, const LoadOptions& options);

}  // namespace longshort::models
