// Rows for tests of kernels, and plain sums over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/rows/rows.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"

namespace longshort::models::cuda {

// The allowed difference of a result. Probabilities are rounded to elements, 8 bits of bfloat16; so is the output.
template <typename Element>
double AttentionBound(double expected) {
  return sizeof(Element) == 4 ? 1e-5 : 4e-3 + std::abs(expected) / 256;
}

// [rows, width] on the device, `stride` elements apart. Gaps between rows, and elements that were not written, are NaN.
template <typename Element>
class TestRows final {
 public:
  TestRows(DeviceArrays& arrays, int64_t width, int64_t stride) : arrays_(&arrays), width_(width), stride_(stride) {}

  // Adds rows of random numbers, or of NaN.
  void Add(int64_t rows, std::mt19937_64& random, float deviation = 1) {
    const std::vector<Element> elements = RandomElements<Element>(random, rows * width_, deviation);
    for (int64_t row = 0; row < rows; ++row) {
      all_.insert(all_.end(), elements.begin() + row * width_, elements.begin() + (row + 1) * width_);
      all_.resize(all_.size() + stride_ - width_, ElementOf<Element>(NAN));
    }
  }
  void AddNothing(int64_t rows) { all_.resize(all_.size() + rows * stride_, ElementOf<Element>(NAN)); }

  // Copies the added rows to the device again.
  Rows Put() {
    on_device_ = arrays_->Put(all_);
    floats_ = Floats(all_);
    return on_device();
  }
  Rows on_device() const { return {.data = on_device_, .stride = stride_}; }
  // [width], of the copied rows.
  const float* Row(int64_t row) const { return floats_.data() + row * stride_; }

  // The device's current rows, [rows][width]. Checks that nothing was written between rows.
  std::vector<float> Get() const {
    std::vector<float> got;
    const std::vector<Element> all = arrays_->Get(on_device_, static_cast<int64_t>(all_.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int64_t>(i) % stride_ < width_) {
        got.push_back(ToFloat(all[i]));
      } else {
        EXPECT_TRUE(std::isnan(ToFloat(all[i]))) << "a write past row " << static_cast<int64_t>(i) / stride_;
      }
    }
    return got;
  }

 private:
  DeviceArrays* arrays_;
  int64_t width_, stride_;
  std::vector<Element> all_;
  std::vector<float> floats_;
  Element* on_device_ = nullptr;
};

// The keys and values that one query of one head sees.
struct SeenVector {
  const float* key;
  const float* value;
  double bias = 0;
};
inline std::vector<double> PlainAttention(const float* query, int width, double scale,
                                          const std::vector<SeenVector>& seen) {
  std::vector<double> scores, mixed(width, 0.0);
  for (const SeenVector& vector : seen) {
    double product = 0;
    for (int c = 0; c < width; ++c) product += double{query[c]} * vector.key[c];
    scores.push_back(product * scale + vector.bias);
  }
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const double probability = std::exp(scores[i] - highest);
    sum += probability;
    for (int c = 0; c < width; ++c) mixed[c] += probability * seen[i].value[c];
  }
  for (double& value : mixed) value /= sum;
  return mixed;
}

}  // namespace longshort::models::cuda
