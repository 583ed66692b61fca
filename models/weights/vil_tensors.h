// The tensors that model.safetensors of a ViL-LS holds: the official names without `module.`.
//
// The official buffers relative_position_index and tensors without elements (cls_pos_embed of a stage without global
// tokens) are not stored.
#pragma once

#include <cstdint>
#include <vector>

#include "models/weights/tensor_shapes.h"
#include "models/weights/vil_config.h"

namespace longshort {

// Rows of the table of relative positions of windows of w x w patches (w > 0), wp = w / 2:
// 2 (w + wp - 1) (2 wp + w + 1) + 1, more than the index of any two patches reaches.
int64_t WindowBiasRows(int64_t window_size);

// Every tensor of a model of this configuration, which holds the rules of CheckVilConfig, in the order of use: stage by
// stage, then `norm` and `head`. All are trained.
std::vector<TensorShape> VilTensors(const VilConfig& config);

}  // namespace longshort
