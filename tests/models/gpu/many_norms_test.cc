// Norms and embeddings of rows on the tested device, against plain sums in double precision.

#include "models/ops/rows/many_norms.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/rows/token_embeddings.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::many_norms_test {

constexpr float kEpsilon = 0.01f;

template <typename Element>
class ManyNormsTest : public ::testing::Test {
 protected:
  // The allowed difference: half of the last of bfloat16's 8 bits, and a little for sums.
  static double Bound(double expected) { return 1e-5 + (sizeof(Element) == 4 ? 0 : std::abs(expected) / 256); }

  // Two kinds of rows. `padding`: elements between rows.
  void Check(int width, int padding) {
    std::mt19937_64 random(width);
    const int stride = width + padding;
    TestRows<Element> inputs[2] = {{arrays_, width, stride}, {arrays_, width, stride}},
                      outputs[2] = {{arrays_, width, stride}, {arrays_, width, stride}};
    for (TestRows<Element>& rows : inputs) rows.Add(kCount, random, /*deviation=*/2);
    for (TestRows<Element>& rows : outputs) rows.AddNothing(kCount);
    std::vector<float> weights[4];
    for (std::vector<float>& some : weights) some = RandomElements<float>(random, width);
    const NormWeights norms[2] = {{arrays_.Put(weights[0]), arrays_.Put(weights[1])},
                                  {arrays_.Put(weights[2]), arrays_.Put(weights[3])}};
    arrays_.Launch(ManyNormsCall({.element = kTypeOf<Element>,
                                  .count = kCount,
                                  .width = width,
                                  .epsilon = kEpsilon,
                                  .kinds = 2,
                                  .each = {{.input = inputs[0].Put(), .norm = norms[0], .output = outputs[0].Put()},
                                           {.input = inputs[1].Put(), .norm = norms[1], .output = outputs[1].Put()}}}));
    for (int kind = 0; kind < 2; ++kind) {
      const std::vector<float> normed = outputs[kind].Get();
      for (int64_t row = 0; row < kCount; ++row) {
        const std::vector<double> x(inputs[kind].Row(row), inputs[kind].Row(row) + width);
        double mean = 0, variance = 0;
        for (const double value : x) mean += value / width;
        for (const double value : x) variance += (value - mean) * (value - mean) / width;
        for (int c = 0; c < width; ++c) {
          const double expected =
              (x[c] - mean) / std::sqrt(variance + kEpsilon) * weights[2 * kind][c] + weights[2 * kind + 1][c];
          ASSERT_NEAR(normed[row * width + c], expected, Bound(expected)) << "row " << row << ", column " << c;
        }
      }
    }
  }

  static constexpr int64_t kCount = 6;  // more than a block's rows
  const std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(ManyNormsTest, Elements);

// Widths that are read in vectors or not, and larger than a warp's.
TYPED_TEST(ManyNormsTest, NormsRows) {
  for (const int width : {1, 7, 24, 130, 516}) {
    for (const int padding : {0, 4, 1}) this->Check(width, padding);
  }
}

TYPED_TEST(ManyNormsTest, InEveryOrderOfThreads) {
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    this->Check(/*width=*/140, /*padding=*/0);
  }
}

TYPED_TEST(ManyNormsTest, EmbedsTokensAndTheirPositions) {
  const std::vector<int32_t> ids = {4, 0, 4, 2, 1};
  const std::vector<int64_t> positions = {0, 2, 1, 2, 0};
  for (const int width : {1, 7, 24, 130, 516}) {
    std::mt19937_64 random(width);
    TestRows<TypeParam> table(this->arrays_, width, width), position_table(this->arrays_, width, width),
        output(this->arrays_, width, width + 4);
    table.Add(5, random);
    position_table.Add(3, random);
    output.AddNothing(5);
    this->arrays_.Launch(EmbedTokensCall({.element = kTypeOf<TypeParam>,
                                          .table = table.Put().data,
                                          .ids = this->arrays_.Put(ids),
                                          .position_table = position_table.Put().data,
                                          .positions = this->arrays_.Put(positions),
                                          .count = 5,
                                          .width = width,
                                          .output = output.Put()}));
    const std::vector<float> got = output.Get();
    for (int64_t row = 0; row < 5; ++row) {
      for (int c = 0; c < width; ++c) {
        const double expected = double{table.Row(ids[row])[c]} + position_table.Row(positions[row])[c];
        ASSERT_NEAR(got[row * width + c], expected, this->Bound(expected)) << "row " << row << ", column " << c;
      }
    }
  }
}

}  // namespace longshort::models::cuda::many_norms_test
