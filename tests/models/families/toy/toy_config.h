// The config.json of a family that exists only in tests: the mean colours of an image's cells, and one hidden layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/families/family.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

struct ToyConfig {
  int64_t cells = 2;  // along a side of the image
  int64_t width = 8;  // of the hidden layer
  int64_t channels = 3;
  int64_t classes = 2;
  double layer_norm_epsilon = 1e-5;
  ImagePreprocessingConfig preprocessing;

  int64_t inputs() const { return channels * cells * cells; }
};

// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<ToyConfig> ParseToyConfig(std::string_view text, const std::string& name);

std::vector<TensorShape> ToyTensors(const ToyConfig& config);

ModelDescription Describe(const ToyConfig& config);

}  // namespace longshort::models
