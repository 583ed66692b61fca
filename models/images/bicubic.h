// Antialiased bicubic interpolation along one axis, as in Pillow's Image.resize(BICUBIC): the cubic kernel with
// a = -0.5, stretched by the reduction, so that all input values within its support contribute.
#pragma once

#include <cstdint>
#include <vector>

namespace longshort::models {

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

// REQUIRES: sizes are positive, and the slice is a non-empty part of the outputs.
BicubicWeights ComputeBicubicWeights(const AxisSlice& slice);

// Weights in units of 2^-22, rounded. Sums of products with 8-bit values are then exact, and equal to Pillow's.
inline constexpr int kWeightBits = 22;
std::vector<int32_t> FixedPointWeights(const BicubicWeights& weights);

}  // namespace longshort::models
