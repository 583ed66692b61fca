#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/images/image_preprocessor.h"
#include "models/images/pixels_preprocessor.h"
#include "models/images/resize.h"

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

// Makes a TokenItem of the image resized to the model's size.
class PixelSequenceMaker {
 public:
  explicit PixelSequenceMaker(const PixelSequenceConfig& config) : size_{config.height, config.width} {}

  int64_t pixels() const { return size_.height * size_.width; }

  // values [size.height, size.width, channels]
  template <typename Value>
  absl::StatusOr<ClassifierItem> operator()(absl::Span<const Value> values, const ImageSize& size,
                                            int64_t channels) const {
    const std::vector<Value> resized = Resize(values, size, channels, WholeImage(size_));
    std::vector<int32_t> ids;
    ids.reserve(static_cast<size_t>(pixels()));
    for (const Value* pixel = resized.data(); pixel != resized.data() + resized.size(); pixel += channels) {
      ids.push_back(IdOfPixel(pixel, channels));
    }
    const bool black = std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id == 0; });
    if (black) return absl::InvalidArgumentError("the image is all black, which the model takes for padding");
    return TokenItem{{std::move(ids)}};
  }

 private:
  ImageSize size_;
};

}  // namespace

std::unique_ptr<ImagePreprocessor> MakePixelSequencePreprocessor(const PixelSequenceConfig& config,
                                                                 const ImageLimits& limits) {
  return std::make_unique<PixelsPreprocessor<PixelSequenceMaker>>(limits, PixelSequenceMaker(config));
}

}  // namespace longshort
