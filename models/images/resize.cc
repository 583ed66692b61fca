#include "models/images/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "opencv2/imgproc.hpp"

namespace longshort::models {
namespace {

// Antialiased bicubic interpolation along one axis, as in Pillow's Image.resize(BICUBIC): the cubic kernel with
// a = -0.5, stretched by the reduction, so that all input values within its support contribute.

// The outputs `begin` .. `begin + count - 1` of an axis that is resized from `in_size` to `out_size` values.
struct AxisSlice {
  int64_t in_size = 0;
  int64_t out_size = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

// Each output is a sum of neighbouring inputs with weights whose sum is 1.
struct BicubicWeights {
  struct Window {
    int64_t begin = 0;         // the first input
    int64_t count = 0;         // at least 1
    int64_t first_weight = 0;  // index into `weights`
  };
  std::vector<Window> windows;  // [slice.count]
  std::vector<double> weights;

  // The range of inputs that the windows cover.
  int64_t first_input() const { return windows.front().begin; }
  int64_t end_input() const { return windows.back().begin + windows.back().count; }
};

constexpr double kA = -0.5;
constexpr double kSupport = 2.0;

// Keys' cubic convolution kernel.
double Cubic(double x) {
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
  return 0.0;
}

// Appends the weights of the output whose centre is at input position `centre`.
BicubicWeights::Window AppendWindow(double centre, double stretch, int64_t in_size, std::vector<double>& weights) {
  const double support = kSupport * stretch;
  const int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
  const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), in_size);
  const auto first_weight = static_cast<int64_t>(weights.size());
  const double narrow = 1.0 / stretch;
  double sum = 0.0;
  for (int64_t x = begin; x < end; ++x) {
    const double weight = Cubic((static_cast<double>(x) - centre + 0.5) * narrow);
    weights.push_back(weight);
    sum += weight;
  }
  for (auto weight = weights.begin() + first_weight; weight != weights.end(); ++weight) *weight /= sum;
  return {begin, end - begin, first_weight};
}

// REQUIRES: sizes are positive, and the slice is a non-empty part of the outputs.
BicubicWeights ComputeBicubicWeights(const AxisSlice& slice) {
  const double scale = static_cast<double>(slice.in_size) / static_cast<double>(slice.out_size);
  const double stretch = std::max(scale, 1.0);
  BicubicWeights result;
  result.windows.reserve(static_cast<size_t>(slice.count));
  for (int64_t out = slice.begin; out < slice.begin + slice.count; ++out) {
    const double centre = (static_cast<double>(out) + 0.5) * scale;
    result.windows.push_back(AppendWindow(centre, stretch, slice.in_size, result.weights));
  }
  return result;
}

// Weights in units of 2^-22, rounded. Sums of products with 8-bit values are then exact, and equal to Pillow's.
constexpr int kWeightBits = 22;

std::vector<int32_t> FixedPointWeights(const BicubicWeights& weights) {
  std::vector<int32_t> fixed;
  fixed.reserve(weights.weights.size());
  for (const double weight : weights.weights) {
    const double scaled = weight * (1 << kWeightBits);
    fixed.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return fixed;
}

// The arithmetic of a value type: its weights, its sums, and their conversion to the type.
template <typename Value>
struct Arithmetic;

template <>
struct Arithmetic<uint8_t> {
  using Weight = int32_t;
  using Sum = int32_t;
  static constexpr Sum kStart = 1 << (kWeightBits - 1);  // one half, for rounding
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

// Resizes one row: values [in_width, kChannels] to out [windows, kChannels].
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

cv::Mat MakeImage(int64_t height, int64_t width, int type) {
  return cv::Mat(static_cast<int>(height), static_cast<int>(width), type);
}

// Resizes rows [begin, end) of the image along the row, only the columns of the crop. Returns [end - begin, crop width,
// channels].
template <typename Value>
cv::Mat ResizeRows(const cv::Mat& image, int64_t begin, int64_t end, const ResizeAndCrop& geometry) {
  const int64_t width = geometry.crop.width;
  const auto first = static_cast<int>(begin), left = static_cast<int>(geometry.left);
  if (image.cols == geometry.resized.width) {
    return image(cv::Rect(left, first, static_cast<int>(width), static_cast<int>(end - begin)));
  }
  const BicubicWeights weights = ComputeBicubicWeights({image.cols, geometry.resized.width, geometry.left, width});
  const auto of_type = Arithmetic<Value>::Weights(weights);
  const auto resize_row = image.channels() == 1 ? ResizeRow<Value, 1> : ResizeRow<Value, 3>;
  cv::Mat rows = MakeImage(end - begin, width, image.type());
  for (int y = 0; y < rows.rows; ++y) {
    resize_row(image.ptr<Value>(first + y), weights.windows, of_type.data(), rows.ptr<Value>(y));
  }
  return rows;
}

// Resizes an image along the columns. It has the rows [first, ...) and only the columns of the crop.
template <typename Value>
cv::Mat ResizeColumns(const cv::Mat& rows, int64_t first, const BicubicWeights& weights) {
  using Rules = Arithmetic<Value>;
  const auto of_type = Rules::Weights(weights);
  const auto row_length = static_cast<size_t>(rows.cols) * static_cast<size_t>(rows.channels());
  std::vector<typename Rules::Sum> sums(row_length);
  cv::Mat result = MakeImage(static_cast<int64_t>(weights.windows.size()), rows.cols, rows.type());
  for (int y = 0; y < result.rows; ++y) {
    const BicubicWeights::Window& window = weights.windows[static_cast<size_t>(y)];
    std::fill(sums.begin(), sums.end(), Rules::kStart);
    for (int64_t i = 0; i < window.count; ++i) {
      const auto* row = rows.ptr<Value>(static_cast<int>(window.begin - first + i));
      const auto weight = of_type[static_cast<size_t>(window.first_weight + i)];
      for (size_t x = 0; x < row_length; ++x) sums[x] += weight * row[x];
    }
    std::transform(sums.begin(), sums.end(), result.ptr<Value>(y), Rules::Finish);
  }
  return result;
}

template <typename Value>
cv::Mat ResizeByPillow(const cv::Mat& image, const ResizeAndCrop& geometry) {
  const auto& [resized, crop, top, left] = geometry;
  if (image.rows == resized.height) return ResizeRows<Value>(image, top, top + crop.height, geometry);
  const BicubicWeights weights = ComputeBicubicWeights({image.rows, resized.height, top, crop.height});
  const cv::Mat rows = ResizeRows<Value>(image, weights.first_input(), weights.end_input(), geometry);
  return ResizeColumns<Value>(rows, weights.first_input(), weights);
}

int Interpolation(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::kOpenCvNearest:
      return cv::INTER_NEAREST;
    case ResizeMethod::kOpenCvLinear:
      return cv::INTER_LINEAR;
    case ResizeMethod::kOpenCvArea:
      return cv::INTER_AREA;
    default:
      return cv::INTER_CUBIC;
  }
}

cv::Mat ResizeByOpenCv(const cv::Mat& image, const ResizeAndCrop& geometry, ResizeMethod method) {
  const auto& [resized, crop, top, left] = geometry;
  cv::Mat whole;
  cv::resize(image, whole, cv::Size(static_cast<int>(resized.width), static_cast<int>(resized.height)), 0, 0,
             Interpolation(method));
  cv::Mat part = whole(cv::Rect(static_cast<int>(left), static_cast<int>(top), static_cast<int>(crop.width),
                                static_cast<int>(crop.height)));
  // Cubic interpolation can overshoot.
  if (part.depth() == CV_32F) part = cv::max(cv::min(part, 1.0), 0.0);
  return part;
}

// Half of the difference. A result between two pixels is rounded to the even one.
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

cv::Mat Resize(const cv::Mat& image, const ResizeAndCrop& geometry, ResizeMethod method) {
  if (method != ResizeMethod::kPillowBicubic) return ResizeByOpenCv(image, geometry, method);
  return image.depth() == CV_8U ? ResizeByPillow<uint8_t>(image, geometry) : ResizeByPillow<float>(image, geometry);
}

}  // namespace longshort::models
