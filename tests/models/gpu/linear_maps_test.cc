// Linear maps of many rows on the tested device, against plain sums in double precision.

#include "models/ops/products/linear_maps.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::linear_maps_test {

enum Operand { kRows = 1, kWeight = 2, kBias = 4, kAddend = 8, kOutput = 16, kAll = 31 };

struct Problem {
  int64_t count = 1;
  int width = 24, outputs = 8;
  int gap = 0;          // elements between rows, and before the bias
  int with_gap = kAll;  // operands that have the gap; the others have none
  bool has_bias = true, has_addend = false, in_place = false;
  RowActivation activation = RowActivation::kNone;
};

template <typename Element>
class LinearMapsTest : public ::testing::Test {
 protected:
  // Rows of normally distributed numbers, with gaps of NaN between them.
  TestRows<Element> Random(int64_t rows, int width, int gap, float deviation = 1) {
    TestRows<Element> random(arrays_, width, width + gap);
    random.Add(rows, random_, deviation);
    random.Put();
    return random;
  }

  // Runs the problem in tiles of both sizes, whose bits must be equal, and compares it.
  void Check(const Problem& problem) {
    SCOPED_TRACE(absl::StrCat(problem.count, " rows of ", problem.width, ", ", problem.outputs, " outputs, gap ",
                              problem.gap, " of ", problem.with_gap, ", bias ", problem.has_bias, ", addend ",
                              problem.has_addend, problem.in_place ? " in place" : "", ", activation ",
                              static_cast<int>(problem.activation)));
    const auto gap = [&](Operand operand) { return (problem.with_gap & operand) != 0 ? problem.gap : 0; };
    const auto rows = Random(problem.count, problem.width, gap(kRows));
    const auto weight = Random(problem.outputs, problem.width, gap(kWeight), 0.3f);
    const auto bias = Random(1, gap(kBias) + problem.outputs, 0);
    const float* const biases = bias.Row(0) + gap(kBias);
    const auto addend = Random(problem.count, problem.outputs, gap(kAddend));
    std::vector<float> got[2];
    for (const bool is_large : {false, true}) {
      TestRows<Element> output = addend;
      if (!problem.in_place) {
        output = TestRows<Element>(arrays_, problem.outputs, problem.outputs + gap(kOutput));
        output.AddNothing(problem.count);
      }
      const Rows to = output.Put();
      const Element* const bias_elements = static_cast<const Element*>(bias.on_device().data) + gap(kBias);
      const Rows added = problem.in_place ? to : addend.on_device();
      arrays_.Launch(LinearMapCall({.element = kTypeOf<Element>,
                                    .count = problem.count,
                                    .width = problem.width,
                                    .outputs = problem.outputs,
                                    .rows = rows.on_device(),
                                    .weight = weight.on_device(),
                                    .bias = problem.has_bias ? bias_elements : nullptr,
                                    .activation = problem.activation,
                                    .addend = problem.has_addend ? added : Rows{},
                                    .output = to},
                                   is_large ? 128 : 64));
      got[is_large] = output.Get();
    }
    EXPECT_EQ(got[0], got[1]);
    for (int64_t i = 0; i < problem.count; ++i) {
      for (int o = 0; o < problem.outputs; ++o) {
        double sum = problem.has_bias ? biases[o] : 0, magnitude = std::abs(sum);
        for (int c = 0; c < problem.width; ++c) {
          sum += double{weight.Row(o)[c]} * rows.Row(i)[c];
          magnitude += std::abs(double{weight.Row(o)[c]} * rows.Row(i)[c]);
        }
        double expected = Activated(problem.activation, sum);
        if (problem.has_addend) expected += addend.Row(i)[o];
        // Rounding in float32 of each sum, then that of the result.
        const double bound = 2e-6 * (1 + magnitude) + (sizeof(Element) == 4 ? 0 : std::abs(expected) / 256);
        ASSERT_NEAR(got[0][i * problem.outputs + o], expected, bound) << "output " << o << " of row " << i;
      }
    }
  }

  static double Activated(RowActivation activation, double x) {
    if (activation == RowActivation::kNone) return x;
    return activation == RowActivation::kRelu ? std::max(x, 0.0) : x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  }

  std::mt19937_64 random_{1};
  const std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(LinearMapsTest, Elements);

// Widths of less than a piece of 16 bytes, and of more than the stages in shared memory: 256 bytes. Rows of whole
// pieces or not. Rows and outputs beyond a tile.
TYPED_TEST(LinearMapsTest, AreThoseOfThePlainForm) {
  for (const int width : {1, 8, 30, 264}) {
    for (const int gap : {0, 8, 3}) {
      for (const int outputs : {1, 8, 70}) this->Check({.count = 3, .width = width, .outputs = outputs, .gap = gap});
    }
  }
  for (const int64_t count : {1, 16, 130}) this->Check({.count = count, .outputs = 136});
}

TYPED_TEST(LinearMapsTest, HaveEachPartOrNot) {
  for (const RowActivation activation : {RowActivation::kGelu, RowActivation::kRelu, RowActivation::kNone}) {
    for (const bool has_bias : {false, true}) {
      for (const bool has_addend : {false, true}) {
        this->Check({.count = 9, .has_bias = has_bias, .has_addend = has_addend, .activation = activation});
      }
    }
  }
  for (const int gap : {0, 1}) this->Check({.count = 9, .gap = gap, .has_addend = true, .in_place = true});
}

// Operands that cannot be read in pieces of 16 bytes.
TYPED_TEST(LinearMapsTest, HaveOperandsOfAnyAlignment) {
  for (const Operand operand : {kRows, kWeight, kBias, kAddend, kOutput}) {
    this->Check({.count = 9, .gap = 1, .with_gap = operand, .has_addend = true});
  }
  for (const int outputs : {1, 8, 70}) this->Check({.count = 3, .outputs = outputs, .has_addend = true});
}

TYPED_TEST(LinearMapsTest, InEveryOrderOfThreads) {
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    for (const int gap : {0, 1}) this->Check({.count = 35, .width = 264, .outputs = 24, .gap = gap});
  }
}

// One row, and the same row as the last of many, whose others are NaN.
TYPED_TEST(LinearMapsTest, ARowsBitsDoNotDependOnTheOthers) {
  constexpr int kWidth = 72, kOutputs = 24;
  const auto weight = this->Random(kOutputs, kWidth, 0);
  const std::vector<TypeParam> row = RandomElements<TypeParam>(this->random_, kWidth);
  std::optional<std::vector<float>> alone;
  for (const int64_t count : {1, 2, 17, 64, 65}) {
    std::vector<TypeParam> rows((count - 1) * kWidth, ElementOf<TypeParam>(NAN));
    rows.insert(rows.end(), row.begin(), row.end());
    TypeParam* const output = this->arrays_.template Make<TypeParam>(count * kOutputs);
    this->arrays_.Launch(LinearMapCall({.element = kTypeOf<TypeParam>,
                                        .count = count,
                                        .width = kWidth,
                                        .outputs = kOutputs,
                                        .rows = {this->arrays_.Put(rows), kWidth},
                                        .weight = weight.on_device(),
                                        .bias = nullptr,
                                        .activation = RowActivation::kNone,
                                        .addend = {},
                                        .output = {output, kOutputs}}));
    const std::vector<float> all = Floats(this->arrays_.Get(output, count * kOutputs));
    const std::vector<float> last(all.end() - kOutputs, all.end());
    if (!alone) alone = last;
    EXPECT_EQ(last, *alone) << count << " rows";
    EXPECT_FALSE(std::isnan(last[0]));
  }
}

}  // namespace longshort::models::cuda::linear_maps_test
