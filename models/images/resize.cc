#include "models/images/resize.h"

#include <algorithm>

#include "models/images/bicubic.h"

namespace longshort {
namespace {

// How values of a type are weighted, summed and brought back to the type.
template <typename Value>
struct Arithmetic;

template <>
struct Arithmetic<uint8_t> {
  using Weight = int32_t;
  using Sum = int32_t;
  static constexpr Sum kStart = 1 << (kWeightBits - 1);  // one half, to round
  static std::vector<Weight> Weights(const BicubicWeights& weights) { return FixedPointWeights(weights); }
  static uint8_t Finish(Sum sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }
};

template <>
struct Arithmetic<float> {
  using Weight = float;
  using Sum = float;
  static constexpr Sum kStart = 0;
  static std::vector<Weight> Weights(const BicubicWeights& weights) {
    return {weights.weights.begin(), weights.weights.end()};
  }
  static float Finish(Sum sum) { return std::clamp(sum, 0.0F, 1.0F); }
};

// One row: values [in_width, kChannels] to out [windows, kChannels].
template <typename Value, int64_t kChannels>
void ResizeRow(const Value* values, const std::vector<BicubicWeights::Window>& windows,
               const typename Arithmetic<Value>::Weight* weights, Value* out) {
  using Rules = Arithmetic<Value>;
  for (const BicubicWeights::Window& window : windows) {
    const Value* in = values + window.begin * kChannels;
    const auto* weight = weights + window.first_weight;
    typename Rules::Sum sums[kChannels];
    std::fill_n(sums, kChannels, Rules::kStart);
    for (int64_t i = 0; i < window.count; ++i, in += kChannels) {
      for (int64_t c = 0; c < kChannels; ++c) sums[c] += weight[i] * in[c];
    }
    for (int64_t c = 0; c < kChannels; ++c) *out++ = Rules::Finish(sums[c]);
  }
}

// Rows [begin, end) of the image, only the columns of the crop, resized along the row: [end - begin, crop width,
// channels].
template <typename Value>
std::vector<Value> ResizeRows(absl::Span<const Value> values, const ImageSize& image, int64_t channels, int64_t begin,
                              int64_t end, const ResizeAndCrop& geometry) {
  const int64_t width = geometry.crop.width;
  std::vector<Value> rows(static_cast<size_t>((end - begin) * width * channels));
  Value* out = rows.data();
  if (image.width == geometry.resized.width) {
    for (int64_t y = begin; y < end; ++y, out += width * channels) {
      const Value* row = values.data() + (y * image.width + geometry.left) * channels;
      std::copy_n(row, width * channels, out);
    }
    return rows;
  }
  const BicubicWeights weights = ComputeBicubicWeights({image.width, geometry.resized.width, geometry.left, width});
  const auto of_type = Arithmetic<Value>::Weights(weights);
  const auto resize_row = channels == 1 ? ResizeRow<Value, 1> : ResizeRow<Value, 3>;
  for (int64_t y = begin; y < end; ++y, out += width * channels) {
    resize_row(values.data() + y * image.width * channels, weights.windows, of_type.data(), out);
  }
  return rows;
}

// Rows [first, ...) of an image, already of the crop's columns, resized along the columns.
template <typename Value>
std::vector<Value> ResizeColumns(const std::vector<Value>& rows, int64_t first, int64_t row_length,
                                 const BicubicWeights& weights) {
  using Rules = Arithmetic<Value>;
  const auto of_type = Rules::Weights(weights);
  std::vector<typename Rules::Sum> sums(static_cast<size_t>(row_length));
  std::vector<Value> result(weights.windows.size() * static_cast<size_t>(row_length));
  Value* out = result.data();
  for (const BicubicWeights::Window& window : weights.windows) {
    std::fill(sums.begin(), sums.end(), Rules::kStart);
    for (int64_t i = 0; i < window.count; ++i) {
      const Value* row = rows.data() + (window.begin - first + i) * row_length;
      const auto weight = of_type[static_cast<size_t>(window.first_weight + i)];
      for (int64_t x = 0; x < row_length; ++x) sums[static_cast<size_t>(x)] += weight * row[x];
    }
    for (const auto sum : sums) *out++ = Rules::Finish(sum);
  }
  return result;
}

template <typename Value>
std::vector<Value> ResizeValues(absl::Span<const Value> values, const ImageSize& image, int64_t channels,
                                const ResizeAndCrop& geometry) {
  const auto& [resized, crop, top, left] = geometry;
  if (image.height == resized.height) {
    return ResizeRows(values, image, channels, top, top + crop.height, geometry);
  }
  const BicubicWeights weights = ComputeBicubicWeights({image.height, resized.height, top, crop.height});
  const std::vector<Value> rows =
      ResizeRows(values, image, channels, weights.first_input(), weights.end_input(), geometry);
  return ResizeColumns(rows, weights.first_input(), crop.width * channels, weights);
}

// Half of the difference, rounded to even where it lies between two pixels.
int64_t CentreOffset(int64_t size, int64_t crop) {
  const int64_t difference = size - crop;
  const int64_t half = difference / 2;
  return difference % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

}  // namespace

ResizeAndCrop CentreCrop(const ImageSize& image, const ImagePreprocessingConfig& config) {
  const int64_t shorter = config.resize_shorter_side;
  const ImageSize resized = image.width <= image.height ? ImageSize{shorter * image.height / image.width, shorter}
                                                        : ImageSize{shorter, shorter * image.width / image.height};
  return {resized,
          {config.crop_height, config.crop_width},
          CentreOffset(resized.height, config.crop_height),
          CentreOffset(resized.width, config.crop_width)};
}

ResizeAndCrop WholeImage(const ImageSize& resized) { return {resized, resized, 0, 0}; }

std::vector<uint8_t> Resize(absl::Span<const uint8_t> values, const ImageSize& image, int64_t channels,
                            const ResizeAndCrop& geometry) {
  return ResizeValues(values, image, channels, geometry);
}

std::vector<float> Resize(absl::Span<const float> values, const ImageSize& image, int64_t channels,
                          const ResizeAndCrop& geometry) {
  return ResizeValues(values, image, channels, geometry);
}

}  // namespace longshort
