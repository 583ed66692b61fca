#include "models/images/bicubic.h"

#include <algorithm>
#include <cmath>

namespace longshort::models {
namespace {

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

}  // namespace

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

std::vector<int32_t> FixedPointWeights(const BicubicWeights& weights) {
  std::vector<int32_t> fixed;
  fixed.reserve(weights.weights.size());
  for (const double weight : weights.weights) {
    const double scaled = weight * (1 << kWeightBits);
    fixed.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return fixed;
}

}  // namespace longshort::models
