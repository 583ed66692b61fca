// Means of items' rows on the tested device, against plain sums in double precision.

#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/rows/rows.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::mean_of_rows_test {

template <typename Element>
class Problem final {
 public:
  // The rows of an item depend on their number only. `gap`: rows between items, which belong to no mean.
  Problem(GpuDevice& device, int64_t width, const std::vector<int64_t>& lengths, int64_t gap = 0)
      : width_(width), arrays_(device) {
    int64_t all = 0, max_splits = 0;
    for (const int64_t length : lengths) {
      std::mt19937_64 random(length);
      rows_.AddNothing(gap);
      rows_.Add(length, random);
      output_.AddNothing(1);
      ranges_.push_back({.first_row = all + gap, .rows = length});
      all += gap + length;
      max_splits = std::max(max_splits, MeanSplitsOf(length));
    }
    const auto items = static_cast<int64_t>(lengths.size());
    mean_ = {.element = kTypeOf<Element>,
             .width = static_cast<int>(width),
             .scale = kScale,
             .items = static_cast<int>(items),
             .max_splits = static_cast<int>(max_splits),
             .ranges = {.each = arrays_.Put(ranges_)},
             .rows = rows_.Put(),
             .output = output_.Put(),
             .partial_sums = arrays_.Make<float>(items * max_splits * width)};
  }

  std::vector<float> Run() {
    arrays_.Launch(SumSplitsCall(mean_));
    arrays_.Launch(MergeSumsCall(mean_));
    return output_.Get();
  }
  void Check(const std::vector<float>& output) const {
    for (size_t item = 0; item < ranges_.size(); ++item) {
      for (int64_t channel = 0; channel < width_; ++channel) {
        double sum = 0;
        for (int64_t i = 0; i < ranges_[item].rows; ++i) sum += rows_.Row(ranges_[item].first_row + i)[channel];
        const double expected = sum * kScale;
        // Sums are float32, except in the output.
        const double bound = 1e-5 + (sizeof(Element) == 4 ? 0 : std::abs(expected) / 256);
        ASSERT_NEAR(output[item * width_ + channel], expected, bound) << "item " << item << ", channel " << channel;
      }
    }
  }

 private:
  static constexpr float kScale = 0.3f;

  const int64_t width_;
  DeviceArrays arrays_;
  std::vector<ItemRows> ranges_;
  TestRows<Element> rows_{arrays_, width_, width_ + 3}, output_{arrays_, width_, width_ + 1};
  MeanOfRows mean_ = {};
};

template <typename Element>
class GpuMeanOfRows : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuMeanOfRows, Elements);

TYPED_TEST(GpuMeanOfRows, SumsItemsOfAnyLengthsAndWidths) {
  for (const int64_t width : {1, 32, 45, 100}) {
    // None, one, fewer than warps, an odd number, a split, one row more, and more splits than warps.
    Problem<TypeParam> problem(*this->device_, width, {0, 1, 3, 30, 77, 128, 129, 1000}, /*gap=*/width % 2);
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuMeanOfRows, AnItemsBitsDependOnItOnly) {
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, 40, {300}).Run();
  const std::vector<float> together = Problem<TypeParam>(*this->device_, 40, {3, 300, 700}).Run();
  EXPECT_EQ(std::vector<float>(together.begin() + 40, together.begin() + 80), alone);
}

TYPED_TEST(GpuMeanOfRows, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    const std::vector<float> output = Problem<TypeParam>(*this->device_, 40, {200}).Run();
    if (first.empty()) first = output;
    EXPECT_EQ(output, first) << NameOf(options);
  }
}

}  // namespace longshort::models::cuda::mean_of_rows_test
