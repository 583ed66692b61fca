#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/images/decode_image.h"
#include "models/images/image_preprocessor.h"
#include "models/images/raw_image.h"
#include "models/images/resize.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

float Unit(uint8_t value) { return static_cast<float>(value) * (1.0F / 255.0F); }
float Unit(float value) { return value; }

// A grey value in [0, 1] to 0..255.
int32_t GreyId(float grey) { return std::min(static_cast<int32_t>(255.5F * grey), 255); }

// Grey stays as it is.
template <typename Value>
int32_t IdOfPixel(const Value* pixel, int64_t channels) {
  if (channels == 1) return GreyId(Unit(pixel[0]));
  return GreyId(0.2989F * Unit(pixel[0]) + 0.5870F * Unit(pixel[1]) + 0.1140F * Unit(pixel[2]));
}

class PixelSequencePreprocessor final : public ImagePreprocessor {
 public:
  PixelSequencePreprocessor(const PixelSequenceConfig& config, const ImageLimits& limits)
      : size_{config.height, config.width}, limits_(limits) {}

  absl::StatusOr<ClassifierItem> Decode(std::string_view bytes) const override {
    LS_ASSIGN_OR_RETURN(const RgbImage image, DecodeImage(bytes, limits_));
    return ItemOf(absl::MakeConstSpan(image.values), image.size, 3);
  }

  absl::StatusOr<ClassifierItem> Convert(const RawImage& image) const override {
    LS_RETURN_IF_ERROR(CheckRawImage(image, limits_));
    return std::visit(
        [&](auto values) {
          return ItemOf(values, {image.height, image.width}, image.channels);
        },
        image.values);
  }

 private:
  // values [size.height, size.width, channels]
  template <typename Value>
  absl::StatusOr<ClassifierItem> ItemOf(absl::Span<const Value> values, const ImageSize& size, int64_t channels) const {
    const std::vector<Value> pixels = Resize(values, size, channels, WholeImage(size_));
    std::vector<int32_t> ids;
    ids.reserve(static_cast<size_t>(size_.height * size_.width));
    for (const Value* pixel = pixels.data(); pixel != pixels.data() + pixels.size(); pixel += channels) {
      ids.push_back(IdOfPixel(pixel, channels));
    }
    const bool black = std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id == 0; });
    if (black) return absl::InvalidArgumentError("the image is all black, which the model takes for padding");
    return TokenItem{{std::move(ids)}};
  }

  const ImageSize size_;
  const ImageLimits limits_;
};

}  // namespace

std::unique_ptr<ImagePreprocessor> MakePixelSequencePreprocessor(const PixelSequenceConfig& config,
                                                                 const ImageLimits& limits) {
  return std::make_unique<PixelSequencePreprocessor>(config, limits);
}

}  // namespace longshort
