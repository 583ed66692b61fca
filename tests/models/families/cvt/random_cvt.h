// CvT*-LS's with random weights of every kind, for tests: no bias is zero, no gain or running statistic is neutral.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/classifier.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models {

// Two stages, five classes; windows of 4 and 3 tokens, an even and an odd number of them in images of 45 x 30 pixels.
CvtConfig SmallCvt();

// Every tensor of the configuration, by its name in model.safetensors.
std::map<std::string, at::Tensor> RandomCvtTensors(const CvtConfig& config, uint64_t seed,
                                                   at::ScalarType type = at::kFloat);

// The network over these very tensors.
CvtNetwork NetworkOver(const CvtConfig& config, const std::map<std::string, at::Tensor>& tensors);

// Normal numbers, [batch, 3, height, width].
at::Tensor RandomImages(int64_t batch, int64_t height, int64_t width, uint64_t seed, at::ScalarType type = at::kFloat);

// [channels, height, width] as an item.
ClassifierItem ImageItemOf(const at::Tensor& image);

// Writes config.json and model.safetensors. Errors: those of WriteSafetensors.
absl::Status WriteImageModel(const TemporaryDirectory& directory, const std::string& config,
                             const std::map<std::string, at::Tensor>& tensors);

}  // namespace longshort::models
