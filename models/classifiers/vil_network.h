// The network of ViL-LS, as tensors: what is loaded, served and trained.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/classifiers/vil_attention.h"
#include "models/layers/linear.h"
#include "models/layers/named_tensors.h"
#include "models/weights/vil_config.h"

namespace longshort::models {

// Attention, then feed-forward, each on normed tokens and added to them.
struct VilPair {
  LayerNorm attention_norm;
  std::variant<VilSparseAttention, VilFullAttention> attention;
  LayerNorm feed_forward_norm;
  FeedForward feed_forward;

  // tokens [batch, g + patches, d] -> the same shape.
  at::Tensor operator()(const at::Tensor& tokens, ItemAttention& item_attention) const;

  void MoveBy(TensorMove& move);
};

// One resolution: the image of the stage before becomes patches, pairs change them.
struct VilStageNetwork {
  at::Tensor patch_weight;   // proj, [d, channels, p, p]
  at::Tensor patch_bias;     // [d]
  LayerNorm embedding_norm;  // of patches; undefined tensors: none
  at::Tensor global_tokens;  // cls_token, [1, g, d]; undefined: none
  // Added to the tokens, undefined with relative positions: cls_pos_embed [1, g, d] (undefined: no global tokens),
  // x_pos_embed [1, n, d/2] of the row, y_pos_embed [1, n, d/2] of the column.
  at::Tensor global_positions, row_positions, column_positions;
  std::vector<VilPair> pairs;
  int64_t patch_size = 0;
  int64_t global_count = 0;  // g
  int64_t side = 0;          // n: of the grid

  // image [batch, channels, height, width] -> tokens [batch, g + n^2, d]. Pixels that fill no patch, at the right and
  // at the bottom, are dropped.
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

  // images [batch, channels, image_size, image_size] -> logits [batch, classes], both of one type.
  at::Tensor operator()(const at::Tensor& images, ItemAttention& item_attention) const;
  // The same by CpuItemAttention: differentiable.
  at::Tensor operator()(const at::Tensor& images) const;

  void MoveBy(TensorMove& move);
};

// Builds the network from `tensor`, which gives each tensor by its name in model.safetensors (of the shape that
// VilTensors says). Gradients reach these very tensors.
VilNetwork MakeVilNetwork(const VilConfig& config, const TensorSource& tensor);

}  // namespace longshort::models
