#include "models/images/image_preprocessor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "models/images/decode_image.h"
#include "models/images/resize.h"
#include "opencv2/core.hpp"

namespace longshort::models {
namespace {

// The error of pixels that float arithmetic has converted, such as 255 * (1 / 255) = 1.0000001.
constexpr float kFloatError = 1e-5F;

absl::Status CheckFloats(absl::Span<const float> values) {
  const auto outside = [](float value) { return !(value >= -kFloatError && value <= 1.0F + kFloatError); };
  const auto found = std::find_if(values.begin(), values.end(), outside);
  if (found == values.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("value ", found - values.begin(), " of the image is ",
                                                 NumberText(*found),
                                                 "; it must be in [0, 1], as a byte divided by 255"));
}

// Errors: INVALID_ARGUMENT naming the value and the limit, if the size exceeds a limit, the channels are not 1 or 3,
// the number of values is not height x width x channels, or a float is NaN or outside [0, 1] by more than kFloatError.
absl::Status CheckRawImage(const RawImage& image, const ImageLimits& limits) {
  LS_RETURN_IF_ERROR(CheckSize({image.height, image.width}, limits));
  if (image.channels != 1 && image.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image has %d channels; it must have 1 or 3", image.channels));
  }
  const auto count = static_cast<int64_t>(std::visit([](const auto& values) { return values.size(); }, image.values));
  if (count != image.height * image.width * image.channels) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image has %d values; %d x %d x %d pixels and channels have %d", count, image.height,
                        image.width, image.channels, image.height * image.width * image.channels));
  }
  const auto* floats = std::get_if<absl::Span<const float>>(&image.values);
  return floats == nullptr ? absl::OkStatus() : CheckFloats(*floats);
}

// A view of the pixels, without a copy. OpenCV has no image of constant pixels, but this one is only read.
template <typename Value>
cv::Mat ViewOf(const RawImage& image, absl::Span<const Value> values) {
  const int type = CV_MAKETYPE(cv::DataType<Value>::depth, static_cast<int>(image.channels));
  return cv::Mat(static_cast<int>(image.height), static_cast<int>(image.width), type,
                 const_cast<Value*>(values.data()));
}

// Bytes divided by 255 become those bytes again, so that they are resized like the bytes, which are rounded on the way.
// Other floats are resized without rounding.
cv::Mat PixelsOf(const RawImage& image) {
  const auto* floats = std::get_if<absl::Span<const float>>(&image.values);
  if (floats == nullptr) return ViewOf(image, std::get<absl::Span<const uint8_t>>(image.values));
  const auto is_byte = [](float value) { return std::abs(value - std::round(255.0F * value) / 255.0F) <= kFloatError; };
  cv::Mat view = ViewOf(image, *floats);
  cv::Mat pixels;
  if (std::all_of(floats->begin(), floats->end(), is_byte)) {
    view.convertTo(pixels, CV_8U, 255.0);
    return pixels;
  }
  const auto [min, max] = std::minmax_element(floats->begin(), floats->end());
  if (*min >= 0.0F && *max <= 1.0F) return view;
  pixels = cv::max(cv::min(view, 1.0), 0.0);
  return pixels;
}

// The size to decode of a file that is `resized` afterwards: so much larger that averaging pixels changes the result by
// a few of 255 levels at most. Interpolation without antialiasing reads single pixels, so all are decoded for it.
std::optional<ImageSize> EnoughFor(const ImageSize& resized, ResizeMethod method) {
  constexpr int64_t kMinReduction = 8;
  if (method != ResizeMethod::kPillowBicubic && method != ResizeMethod::kOpenCvArea) return std::nullopt;
  return ImageSize{kMinReduction * resized.height, kMinReduction * resized.width};
}

// `Maker::pixels()` is the number of pixels of its items, `Maker::orientation()` how encoded images are turned, and
// `Maker::EnoughToDecode(size)` as DecodeOptions::enough of a file of that size as stored.
// `Maker::Make(image, full_size)` returns an absl::StatusOr<ClassifierItem>. The image is within the limits and has
// uint8 values, or floats in [0, 1], of 1 or 3 channels; it may have been scaled from `full_size`.
template <typename Maker>
class Preprocessor final : public ImagePreprocessor {
 public:
  Preprocessor(const ImageLimits& limits, Maker maker) : limits_(limits), maker_(std::move(maker)) {}

  int64_t pixels() const override { return maker_.pixels(); }

  absl::StatusOr<ImageHeader> ReadHeader(std::string_view bytes) const override {
    return ReadImageHeader(bytes, limits_);
  }

  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes, const ImageHeader& header) const override {
    LS_ASSIGN_OR_RETURN(const DecodedImage image,
                        DecodeImage(bytes, header, {maker_.orientation(), maker_.EnoughToDecode(header.size)}));
    return CallOpenCv([&] { return maker_.Make(image.pixels, image.full_size); });
  }

  absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const override {
    LS_RETURN_IF_ERROR(CheckRawImage(image, limits_));
    return CallOpenCv([&] { return maker_.Make(PixelsOf(image), {image.height, image.width}); });
  }

 private:
  const ImageLimits limits_;
  const Maker maker_;
};

// Makes an ImageItem of the centre of the resized image.
class CentreCropMaker {
 public:
  CentreCropMaker(const ImagePreprocessingConfig& config, const ImageLimits& limits)
      : config_(config), max_resized_pixels_(limits.max_pixels) {
    auto values = std::make_shared<std::vector<float>>();
    for (size_t channel = 0; channel < 3; ++channel) {
      for (int byte = 0; byte < 256; ++byte) values->push_back(Normalise(static_cast<float>(byte) / 255.0F, channel));
    }
    values_of_bytes_ = std::move(values);
  }

  int64_t pixels() const { return config_.crop_height * config_.crop_width; }
  OrientationUse orientation() const { return config_.orientation; }

  std::optional<ImageSize> EnoughToDecode(const ImageSize& size) const {
    return EnoughFor(CentreCrop(size, config_).resized, config_.resize);
  }

  absl::StatusOr<ClassifierItem> Make(const cv::Mat& image, const ImageSize& full_size) const {
    const ResizeAndCrop geometry = CentreCrop(full_size, config_);
    LS_RETURN_IF_ERROR(CheckResized(geometry.resized));
    const cv::Mat crop = Resize(image, geometry, config_.resize);
    return crop.depth() == CV_8U ? ItemOf<uint8_t>(crop) : ItemOf<float>(crop);
  }

 private:
  // OpenCV resizes the whole image before the crop. A strip of one pixel's height can become 65536 times as large.
  absl::Status CheckResized(const ImageSize& resized) const {
    if (config_.resize == ResizeMethod::kPillowBicubic || resized.pixels() <= max_resized_pixels_)
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("the image would be resized to %d x %d = %d pixels; the limit is %d", resized.width,
                        resized.height, resized.pixels(), max_resized_pixels_));
  }

  // crop [crop_height, crop_width, channels]
  template <typename Value>
  ImageItem ItemOf(const cv::Mat& crop) const {
    ImageItem item{config_.crop_height, config_.crop_width, {}};
    if constexpr (std::is_same_v<Value, uint8_t>) {
      item.values_of_bytes = values_of_bytes_;
      item.bytes = Channels<Value>(crop, [](uint8_t byte, int /*channel*/) { return byte; });
    } else {
      item.values = Channels<Value>(crop, [this](float value, int channel) { return Normalise(value, channel); });
    }
    return item;
  }

  // Returns convert(value, channel) of each value, [3, crop_height, crop_width].
  template <typename Value, typename Convert>
  std::vector<Value> Channels(const cv::Mat& crop, const Convert& convert) const {
    std::vector<Value> values(static_cast<size_t>(3 * pixels()));
    const int stride = crop.channels();
    Value* out = values.data();
    for (int channel = 0; channel < 3; ++channel) {
      for (int y = 0; y < crop.rows; ++y) {
        const auto* in = crop.ptr<Value>(y) + channel % stride;
        for (int x = 0; x < crop.cols; ++x) *out++ = convert(in[x * stride], channel);
      }
    }
    return values;
  }

  float Normalise(float value, size_t channel) const {
    return (value - static_cast<float>(config_.mean[channel])) /
           static_cast<float>(config_.standard_deviation[channel]);
  }

  ImagePreprocessingConfig config_;
  int64_t max_resized_pixels_;
  std::shared_ptr<const std::vector<float>> values_of_bytes_;  // as ImageItem's
};

float Unit(uint8_t value) { return static_cast<float>(value) * (1.0F / 255.0F); }
float Unit(float value) { return value; }

// Converts a grey value in [0, 1] to 0..255.
int32_t GreyId(float grey) { return std::min(static_cast<int32_t>(255.5F * grey), 255); }

// Converts colours to grey. Grey is unchanged.
template <typename Value>
int32_t IdOfPixel(const Value* pixel, int channels) {
  if (channels == 1) return GreyId(Unit(pixel[0]));
  return GreyId(0.2989F * Unit(pixel[0]) + 0.5870F * Unit(pixel[1]) + 0.1140F * Unit(pixel[2]));
}

// Makes a TokenItem of the image resized to the model's size.
class PixelSequenceMaker {
 public:
  explicit PixelSequenceMaker(const PixelSequenceConfig& config)
      : size_{config.height, config.width}, resize_(config.resize), orientation_(config.orientation) {}

  int64_t pixels() const { return size_.pixels(); }
  OrientationUse orientation() const { return orientation_; }

  // The orientation may exchange the sides.
  std::optional<ImageSize> EnoughToDecode(const ImageSize& /*size*/) const {
    const int64_t longer_side = std::max(size_.height, size_.width);
    return EnoughFor({longer_side, longer_side}, resize_);
  }

  absl::StatusOr<ClassifierItem> Make(const cv::Mat& image, const ImageSize& /*full_size*/) const {
    const cv::Mat resized = Resize(image, WholeImage(size_), resize_);
    std::vector<int32_t> ids = resized.depth() == CV_8U ? IdsOf<uint8_t>(resized) : IdsOf<float>(resized);
    const bool black = std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id == 0; });
    if (black) return absl::InvalidArgumentError("the image is all black, which the model treats as padding");
    return TokenItem{{std::move(ids)}};
  }

 private:
  template <typename Value>
  std::vector<int32_t> IdsOf(const cv::Mat& resized) const {
    std::vector<int32_t> ids;
    ids.reserve(static_cast<size_t>(pixels()));
    const int channels = resized.channels();
    for (int y = 0; y < resized.rows; ++y) {
      const auto* row = resized.ptr<Value>(y);
      for (int x = 0; x < resized.cols; ++x) ids.push_back(IdOfPixel(row + x * channels, channels));
    }
    return ids;
  }

  ImageSize size_;
  ResizeMethod resize_;
  OrientationUse orientation_;
};

}  // namespace

std::unique_ptr<ImagePreprocessor> MakeImagePreprocessor(const ImagePreprocessingConfig& config,
                                                         const ImageLimits& limits) {
  return std::make_unique<Preprocessor<CentreCropMaker>>(limits, CentreCropMaker(config, limits));
}

std::unique_ptr<ImagePreprocessor> MakePixelSequencePreprocessor(const PixelSequenceConfig& config,
                                                                 const ImageLimits& limits) {
  return std::make_unique<Preprocessor<PixelSequenceMaker>>(limits, PixelSequenceMaker(config));
}

}  // namespace longshort::models
