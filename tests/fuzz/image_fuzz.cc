// Decodes any bytes as an image. They are rejected with a message, or the pixels are always the same and make an item.
// The decoded image is never larger than the size that was compared with the limits.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "models/images/codecs.h"
#include "models/images/decode_image.h"
#include "models/images/image_preprocessor.h"
#include "opencv2/core.hpp"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  // Small, so that an input costs little.
  constexpr models::ImageLimits kLimits{.max_bytes = 1 << 16, .max_pixels = 1 << 14, .max_side = 1 << 12};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto canvas = models::ReadWebpHeader(bytes); canvas.ok()) {
    if (const auto frame = models::FirstWebpFrame(bytes, canvas->size); frame.ok() && frame->has_value()) {
      const auto inside = models::ReadWebpHeader((*frame)->file);
      Require(inside.ok() && inside->size == (*frame)->size, "a frame is as large as its image");
      Require(inside->size.height <= canvas->size.height && inside->size.width <= canvas->size.width,
              "a frame is within its canvas");
    }
  }
  const auto image = models::DecodeImage(bytes, kLimits);
  if (!image.ok()) {
    Require(image.status().code() == absl::StatusCode::kInvalidArgument, "a broken image is an invalid argument");
    Require(!image.status().message().empty(), "the message says what is wrong");
    return 0;
  }
  Require(!image->empty() && static_cast<int64_t>(image->total()) <= kLimits.max_pixels,
          "an image is within the limits");
  Require(image->type() == CV_8UC3, "an image is of three channels of 8 bits");
  const auto again = models::DecodeImage(bytes, kLimits);
  Require(again.ok() && again->size() == image->size() && cv::norm(*again, *image, cv::NORM_INF) == 0,
          "no pixel depends on what the memory held before");

  models::ImagePreprocessingConfig crop{.resize_shorter_side = 12, .crop_height = 8, .crop_width = 10};
  const auto item = models::MakeImagePreprocessor(crop, kLimits)->Decode(bytes);
  Require(item.ok() && std::get<models::ImageItem>(*item).size() == 3 * 8 * 10, "pixels make an item");
  crop.resize = static_cast<models::ResizeMethod>(1 + bytes.size() % 4);
  const auto by_opencv = models::MakeImagePreprocessor(crop, kLimits)->Decode(bytes);
  Require(by_opencv.ok() || by_opencv.status().code() == absl::StatusCode::kInvalidArgument,
          "OpenCV resizes, or the image is too long for it");
  const auto sequence = models::MakePixelSequencePreprocessor({.height = 4, .width = 5}, kLimits)->Decode(bytes);
  if (!sequence.ok()) return 0;  // all black
  for (const int32_t id : std::get<models::TokenItem>(*sequence).documents.front()) {
    Require(id >= 0 && id <= 255, "an id is a grey value");
  }
  return 0;
}
