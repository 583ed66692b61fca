// "preprocessing" in a config.json: the conversion of an image to the model's input.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort::models {

// The interpolation that resizes an image, exact in all bits. It must be the one of the model's training.
enum class ResizeMethod { kPillowBicubic, kOpenCvNearest, kOpenCvLinear, kOpenCvArea, kOpenCvCubic };

// Whether an encoded image is turned upright, as its EXIF or XMP data say. An evaluation that reads pixels only, such
// as the official one of the vision models, ignores them.
enum class OrientationUse { kApply, kIgnore };

// Resize, crop the centre, normalise: the preprocessing in the evaluation of image models.
struct ImagePreprocessingConfig {
  // Pixels of the shorter side after resizing; at least each side of the crop.
  int64_t resize_shorter_side = 256;
  int64_t crop_height = 224;  // pixels
  int64_t crop_width = 224;   // pixels
  // For each channel, red first, of values from 0 to 1. The model's input is (value - mean) / standard_deviation.
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> standard_deviation = {0.229, 0.224, 0.225};
  // In the file: "resize": {"library": "pillow", "filter": "bicubic"}, or {"library": "opencv", "filter": ...} with
  // "nearest", "linear", "area" or "cubic".
  ResizeMethod resize = ResizeMethod::kPillowBicubic;
  OrientationUse orientation = OrientationUse::kApply;  // in the file: "apply" or "ignore"

  friend bool operator==(const ImagePreprocessingConfig&, const ImagePreprocessingConfig&) = default;
};

// The size of the grey image whose values, row by row, are the tokens of a pixel-sequence classifier.
struct PixelSequenceConfig {
  int64_t height = 32;  // pixels
  int64_t width = 32;   // pixels
  ResizeMethod resize = ResizeMethod::kPillowBicubic;
  OrientationUse orientation = OrientationUse::kApply;  // in the file: "apply" or "ignore"

  friend bool operator==(const PixelSequenceConfig&, const PixelSequenceConfig&) = default;
};

// All fields of "preprocessing".
std::vector<FieldDescription> ImagePreprocessingFields();
std::vector<FieldDescription> PixelSequenceFields();

// Both parse the field "preprocessing" of a config.json strictly. All fields except "resize" and "orientation" are
// required, under the names above. Sides are 1 to 16384 pixels.
// Errors: INVALID_ARGUMENT naming the file, the field, its value and the allowed values.
absl::StatusOr<ImagePreprocessingConfig> ReadImagePreprocessing(const JsonView& config);
absl::StatusOr<PixelSequenceConfig> ReadPixelSequence(const JsonView& config);

// The value of "preprocessing". It contains "resize" and "orientation" only if they are not the defaults.
nlohmann::ordered_json ToJson(const ImagePreprocessingConfig& config);
nlohmann::ordered_json ToJson(const PixelSequenceConfig& config);

}  // namespace longshort::models
