#include "models/weights/image_preprocessing_config.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr std::string_view kField = "preprocessing";
constexpr int64_t kMaxPixels = 16384;  // of a side

absl::StatusOr<int64_t> ReadSide(const JsonView& fields, std::string_view field) {
  LS_ASSIGN_OR_RETURN(const int64_t pixels, fields.Integer(field));
  if (pixels < 1 || pixels > kMaxPixels) return fields.Wrong(field, absl::StrFormat("in 1..%d", kMaxPixels));
  return pixels;
}

absl::StatusOr<std::array<double, 3>> ReadChannels(const JsonView& fields, std::string_view field) {
  LS_ASSIGN_OR_RETURN(const std::vector<double> values, fields.Numbers(field));
  if (values.size() != 3) return fields.Wrong(field, "three numbers: red, green, blue");
  return std::array<double, 3>{values[0], values[1], values[2]};
}

constexpr std::string_view kResize = "resize";
constexpr std::array<std::string_view, 2> kLibraries = {"pillow", "opencv"};
constexpr std::array<std::string_view, 1> kPillowFilters = {"bicubic"};
// In the order of ResizeMethod, after Pillow's.
constexpr std::array<std::string_view, 4> kOpenCvFilters = {"nearest", "linear", "area", "cubic"};

FieldDescription DescribeResize() {
  const std::string values =
      absl::StrFormat("an object: library %s, filter %s; or library %s, filter %s", QuotedWords({&kLibraries[0], 1}),
                      QuotedWords(kPillowFilters), QuotedWords({&kLibraries[1], 1}), QuotedWords(kOpenCvFilters));
  return {kResize, values,
          "Interpolation that resizes, equal to this library's bit for bit. Absent: Pillow's bicubic."};
}

absl::StatusOr<ResizeMethod> ReadResize(const JsonView& preprocessing) {
  if (!preprocessing.Has(kResize)) return ResizeMethod::kPillowBicubic;
  LS_ASSIGN_OR_RETURN(const JsonView fields, preprocessing.Object(kResize));
  LS_RETURN_IF_ERROR(fields.RefuseUnknown({"library", "filter"}));
  LS_ASSIGN_OR_RETURN(const size_t library, fields.Choice("library", kLibraries));
  if (library == 0) {
    LS_RETURN_IF_ERROR(fields.Choice("filter", kPillowFilters).status());
    return ResizeMethod::kPillowBicubic;
  }
  LS_ASSIGN_OR_RETURN(const size_t filter, fields.Choice("filter", kOpenCvFilters));
  return static_cast<ResizeMethod>(kPillowFilters.size() + filter);
}

constexpr std::string_view kOrientation = "orientation";
constexpr std::array<std::string_view, 2> kOrientationUses = {"apply", "ignore"};  // in the order of OrientationUse

FieldDescription DescribeOrientation() {
  return {kOrientation, QuotedWords(kOrientationUses),
          "apply: a file is turned upright, as its EXIF or XMP data say. ignore: it is taken as it is stored, as in "
          "evaluations that ignore these data. Absent: \"apply\"."};
}

absl::StatusOr<OrientationUse> ReadOrientationUse(const JsonView& preprocessing) {
  if (!preprocessing.Has(kOrientation)) return OrientationUse::kApply;
  LS_ASSIGN_OR_RETURN(const size_t use, preprocessing.Choice(kOrientation, kOrientationUses));
  return static_cast<OrientationUse>(use);
}

// Adds the optional fields that do not have their defaults.
template <typename Config>
nlohmann::ordered_json WithOptional(nlohmann::ordered_json document, const Config& config) {
  if (config.resize != ResizeMethod::kPillowBicubic) {
    const size_t filter = static_cast<size_t>(config.resize) - kPillowFilters.size();
    document[std::string(kResize)] = {{"library", kLibraries[1]}, {"filter", kOpenCvFilters[filter]}};
  }
  if (config.orientation != OrientationUse::kApply) {
    document[std::string(kOrientation)] = kOrientationUses[static_cast<size_t>(config.orientation)];
  }
  return document;
}

}  // namespace

std::vector<FieldDescription> ImagePreprocessingFields() {
  const std::string side = RangeText(1, kMaxPixels);
  return {
      {"resize_shorter_side", side,
       "The shorter side after resizing, in pixels, at least both sides of the crop; the longer one in proportion, "
       "rounded down."},
      {"crop_height", side, "Height of the part that is cut out of the middle, in pixels."},
      {"crop_width", side, "Width of that part, in pixels."},
      {"mean", "three numbers", "Subtracted from red, green and blue, which are 0 to 1."},
      {"standard_deviation", "three numbers above 0", "Divisors of red, green and blue, after the mean is subtracted."},
      DescribeResize(),
      DescribeOrientation(),
  };
}

std::vector<FieldDescription> PixelSequenceFields() {
  const std::string side = RangeText(1, kMaxPixels);
  return {{"height", side, "Rows of grey values, in pixels; height times width tokens must fit the model."},
          {"width", side, "Grey values in a row."},
          DescribeResize(),
          DescribeOrientation()};
}

absl::StatusOr<ImagePreprocessingConfig> ReadImagePreprocessing(const JsonView& config) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, config.Object(kField));
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(ImagePreprocessingFields())));
  ImagePreprocessingConfig result;
  LS_ASSIGN_OR_RETURN(result.resize_shorter_side, ReadSide(fields, "resize_shorter_side"));
  LS_ASSIGN_OR_RETURN(result.crop_height, ReadSide(fields, "crop_height"));
  LS_ASSIGN_OR_RETURN(result.crop_width, ReadSide(fields, "crop_width"));
  LS_ASSIGN_OR_RETURN(result.mean, ReadChannels(fields, "mean"));
  LS_ASSIGN_OR_RETURN(result.standard_deviation, ReadChannels(fields, "standard_deviation"));
  LS_ASSIGN_OR_RETURN(result.resize, ReadResize(fields));
  LS_ASSIGN_OR_RETURN(result.orientation, ReadOrientationUse(fields));
  const int64_t crop = std::max(result.crop_height, result.crop_width);
  if (result.resize_shorter_side < crop)
    return fields.Wrong("resize_shorter_side", absl::StrFormat("at least both sides of the crop, %d", crop));
  const auto& deviation = result.standard_deviation;
  if (*std::min_element(deviation.begin(), deviation.end()) <= 0) return fields.Wrong("standard_deviation", "above 0");
  return result;
}

absl::StatusOr<PixelSequenceConfig> ReadPixelSequence(const JsonView& config) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, config.Object(kField));
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(PixelSequenceFields())));
  PixelSequenceConfig result;
  LS_ASSIGN_OR_RETURN(result.height, ReadSide(fields, "height"));
  LS_ASSIGN_OR_RETURN(result.width, ReadSide(fields, "width"));
  LS_ASSIGN_OR_RETURN(result.resize, ReadResize(fields));
  LS_ASSIGN_OR_RETURN(result.orientation, ReadOrientationUse(fields));
  return result;
}

nlohmann::ordered_json ToJson(const ImagePreprocessingConfig& config) {
  return WithOptional({{"resize_shorter_side", config.resize_shorter_side},
                       {"crop_height", config.crop_height},
                       {"crop_width", config.crop_width},
                       {"mean", config.mean},
                       {"standard_deviation", config.standard_deviation}},
                      config);
}

nlohmann::ordered_json ToJson(const PixelSequenceConfig& config) {
  return WithOptional({{"height", config.height}, {"width", config.width}}, config);
}

}  // namespace longshort::models
