// ViLs with random weights of every kind, for tests: no bias is zero, no gain is one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_network.h"

namespace longshort::models {

using TensorsByName = std::map<std::string, at::Tensor>;

// A configuration of these stages for images of `image_size` pixels on both sides, with 5 classes.
VilConfig VilOf(const std::string& stages, int64_t image_size);

// Every tensor of the configuration, by its name in model.safetensors.
TensorsByName RandomVilTensors(const VilConfig& config, uint64_t seed, at::ScalarType type = at::kFloat);

// The network over these very tensors.
VilNetwork NetworkOver(const VilConfig& config, const TensorsByName& tensors);

// [batch, classes], of the images' type, with CpuItemAttention.
at::Tensor Logits(const VilNetwork& network, const at::Tensor& images);

// Normal numbers: [batch, 3, image_size, image_size].
at::Tensor RandomImages(const VilConfig& config, int64_t batch, uint64_t seed);

}  // namespace longshort::models
