// Any bytes as an image: refused with a message, or pixels that are the same every time and make an item. What is
// decoded is never larger than what was compared with the limits.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "models/images/decode_image.h"
#include "models/images/image_preprocessor.h"
#include "models/images/webp.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  // Small, so that an input costs little.
  constexpr ImageLimits kLimits{.max_bytes = 1 << 16, .max_pixels = 1 << 14, .max_side = 1 << 12};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto frame = FirstWebpFrame(bytes); frame.ok() && frame->has_value()) {
    const auto canvas = WebpSize(bytes), inside = WebpSize((*frame)->file);
    Require(canvas.ok() && inside.ok() && *inside == (*frame)->size, "a frame is as large as its image");
    Require(inside->height <= canvas->height && inside->width <= canvas->width, "a frame is within its canvas");
  }
  const auto image = DecodeImage(bytes, kLimits);
  if (!image.ok()) {
    Require(image.status().code() == absl::StatusCode::kInvalidArgument, "a broken image is an invalid argument");
    Require(!image.status().message().empty(), "the message says what is wrong");
    return 0;
  }
  const auto [height, width] = image->size;
  Require(height >= 1 && width >= 1 && height * width <= kLimits.max_pixels, "an image is within the limits");
  Require(static_cast<int64_t>(image->values.size()) == height * width * 3, "an image is as large as its size says");
  const auto again = DecodeImage(bytes, kLimits);
  Require(again.ok() && again->values == image->values, "no pixel depends on what the memory held before");

  const ImagePreprocessingConfig crop{.resize_shorter_side = 12, .crop_height = 8, .crop_width = 10};
  const auto item = MakeImagePreprocessor(crop, kLimits)->Decode(bytes);
  Require(item.ok() && std::get<ImageItem>(*item).values.size() == 3 * 8 * 10, "pixels make an item");
  const auto sequence = MakePixelSequencePreprocessor({.height = 4, .width = 5}, kLimits)->Decode(bytes);
  if (!sequence.ok()) return 0;  // all black
  for (const int32_t id : std::get<TokenItem>(*sequence).documents.front()) {
    Require(id >= 0 && id <= 255, "an id is a grey value");
  }
  return 0;
}
