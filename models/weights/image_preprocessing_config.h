// "preprocessing" in a config.json: how an image becomes what the model takes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort::models {

// Whose interpolation resizes an image, to the bit: what the model was trained with.
enum class ResizeMethod { kPillowBicubic, kOpenCvNearest, kOpenCvLinear, kOpenCvArea, kOpenCvCubic };

// Resize, centre crop, normalise: what the models of images were evaluated with.
struct ImagePreprocessingConfig {
  // Pixels of the shorter side after resizing; at least both sides of the crop.
  int64_t resize_shorter_side = 256;
  int64_t crop_height = 224;  // pixels
  int64_t crop_width = 224;   // pixels
  // Of each channel, red first, in values of 0 to 1; what is served is (value - mean) / standard_deviation.
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> standard_deviation = {0.229, 0.224, 0.225};
  // As "resize": {"library": "pillow", "filter": "bicubic"}, or {"library": "opencv", "filter": ...} with "nearest",
  // "linear", "area" or "cubic".
  ResizeMethod resize = ResizeMethod::kPillowBicubic;

  friend bool operator==(const ImagePreprocessingConfig&, const ImagePreprocessingConfig&) = default;
};

// The size of the grey image whose values, row by row, are the tokens of a pixel-sequence classifier.
struct PixelSequenceConfig {
  int64_t height = 32;  // pixels
  int64_t width = 32;   // pixels
  ResizeMethod resize = ResizeMethod::kPillowBicubic;

  friend bool operator==(const PixelSequenceConfig&, const PixelSequenceConfig&) = default;
};

// Every field of "preprocessing".
std::vector<FieldDescription> ImagePreprocessingFields();
std::vector<FieldDescription> PixelSequenceFields();

// Both read the field "preprocessing" of a config.json strictly: every field except "resize" is required, under the
// name that it has above. Sides are 1 to 16384 pixels.
// Errors: INVALID_ARGUMENT naming the file, the field, its value and what is allowed.
absl::StatusOr<ImagePreprocessingConfig> ReadImagePreprocessing(const JsonFields& config);
absl::StatusOr<PixelSequenceConfig> ReadPixelSequence(const JsonFields& config);

// The value of "preprocessing". "resize" is written where it is not the default.
nlohmann::ordered_json ToJson(const ImagePreprocessingConfig& config);
nlohmann::ordered_json ToJson(const PixelSequenceConfig& config);

}  // namespace longshort::models
