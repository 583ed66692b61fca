#include "models/images/image_preprocessor.h"

#include <array>
#include <vector>

#include "models/images/pixels_preprocessor.h"
#include "models/images/resize.h"

namespace longshort {
namespace {

// Makes an ImageItem of the middle of the resized image.
class CentreCropMaker {
 public:
  explicit CentreCropMaker(const ImagePreprocessingConfig& config) : config_(config) {
    for (size_t channel = 0; channel < 3; ++channel) {
      for (int value = 0; value < 256; ++value) {
        normalised_[channel][value] = Normalise(static_cast<float>(value) / 255.0F, channel);
      }
    }
  }

  int64_t pixels() const { return config_.crop_height * config_.crop_width; }

  // values [size.height, size.width, channels]
  template <typename Value>
  absl::StatusOr<ClassifierItem> operator()(absl::Span<const Value> values, const ImageSize& size,
                                            int64_t channels) const {
    const std::vector<Value> crop = Resize(values, size, channels, CentreCrop(size, config_));
    const auto plane = static_cast<size_t>(pixels());
    const auto stride = static_cast<size_t>(channels);
    ImageItem item{config_.crop_height, config_.crop_width, std::vector<float>(3 * plane)};
    for (size_t channel = 0; channel < 3; ++channel) {
      const Value* in = crop.data() + channel % stride;
      float* out = item.values.data() + channel * plane;
      for (size_t pixel = 0; pixel < plane; ++pixel) out[pixel] = Normalised(in[pixel * stride], channel);
    }
    return item;
  }

 private:
  float Normalise(float value, size_t channel) const {
    return (value - static_cast<float>(config_.mean[channel])) /
           static_cast<float>(config_.standard_deviation[channel]);
  }
  float Normalised(uint8_t value, size_t channel) const { return normalised_[channel][value]; }
  float Normalised(float value, size_t channel) const { return Normalise(value, channel); }

  ImagePreprocessingConfig config_;
  std::array<std::array<float, 256>, 3> normalised_;  // of each channel's 8-bit values
};

}  // namespace

std::unique_ptr<ImagePreprocessor> MakeImagePreprocessor(const ImagePreprocessingConfig& config,
                                                         const ImageLimits& limits) {
  return std::make_unique<PixelsPreprocessor<CentreCropMaker>>(limits, CentreCropMaker(config));
}

}  // namespace longshort
