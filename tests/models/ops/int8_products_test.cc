#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "models/ops/products/product_kernels.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::cpu {
namespace {

float Float(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
float Widened(BFloat16 number) { return Float(static_cast<uint32_t>(number.bits) << 16); }

class Int8ProductsTest : public ::testing::TestWithParam<InstructionSet> {
 protected:
  std::vector<float> Random(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(random_);
    return numbers;
  }
  std::mt19937 random_{7};  // NOLINT(cert-msc51-cpp): the same in each run
};

// A panel, and its weights one by one.
struct Panel {
  Panel(int64_t inputs, std::mt19937& random) : inputs(inputs) {
    std::uniform_int_distribution<int> number(-127, 127);
    std::uniform_real_distribution<float> scale(0.001F, 0.02F);
    numbers.resize(inputs * kPanelOutputs);
    scales.resize((inputs + kGroupInputs - 1) / kGroupInputs * kPanelOutputs);
    for (int8_t& each : numbers) each = static_cast<int8_t>(number(random));
    for (float& each : scales) each = scale(random);
  }
  Int8Panel view() const { return {.numbers = numbers.data(), .scales = scales.data(), .inputs = inputs}; }
  float Weight(int64_t input, int64_t output) const {
    const int64_t word = input / kWordInputs * kPanelOutputs + output;
    return static_cast<float>(numbers[word * kWordInputs + input % kWordInputs]) *
           scales[input / kGroupInputs * kPanelOutputs + output];
  }

  int64_t inputs;
  std::vector<int8_t> numbers;
  std::vector<float> scales;
};

constexpr int64_t kInputs[] = {4, 60, 64, 68, 200};

TEST_P(Int8ProductsTest, AProductIsTheSumOfRowsTimesWeights) {
  for (const int64_t inputs : kInputs) {
    const Panel panel(inputs, random_);
    for (const int64_t count : {1, 2, 3, 4, 5, 7, 11}) {
      const int64_t stride = inputs + 3, out_stride = kPanelOutputs + 5;
      const std::vector<float> rows = Random(count * stride);
      std::vector<float> out(count * out_stride, 99);
      MultiplyInt8(panel.view(), {rows.data(), stride}, count, {out.data(), out_stride}, GetParam());
      for (int64_t row = 0; row < count; ++row) {
        for (int64_t output = 0; output < kPanelOutputs; ++output) {
          double sum = 0;
          for (int64_t i = 0; i < inputs; ++i) sum += rows[row * stride + i] * double{panel.Weight(i, output)};
          ASSERT_NEAR(out[row * out_stride + output], sum, 1e-4) << inputs << " inputs, row " << row << " of " << count;
        }
        ASSERT_EQ(out[row * out_stride + kPanelOutputs], 99);
      }
    }
  }
}

TEST_P(Int8ProductsTest, WidenedWeightsAreNumbersTimesScales) {
  for (const int64_t inputs : kInputs) {
    const Panel panel(inputs, random_);
    const int64_t stride = kPanelOutputs + 8;
    std::vector<float> widened(inputs * stride);
    std::vector<BFloat16> pairs(inputs * kPanelOutputs);
    WidenInt8(panel.view(), {widened.data(), stride}, GetParam());
    WidenToPairs(panel.view(), pairs.data(), GetParam());
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t output = 0; output < kPanelOutputs; ++output) {
        const float weight = panel.Weight(i, output);
        ASSERT_FLOAT_EQ(widened[i * stride + output], weight);
        const float rounded = Widened(pairs[(i / 2 * kPanelOutputs + output) * 2 + i % 2]);
        ASSERT_NEAR(rounded, weight, std::abs(weight) / 256) << "input " << i << ", output " << output;
      }
    }
  }
}

TEST_P(Int8ProductsTest, WidenedPairsAreTheirNumbers) {
  constexpr int64_t kPairInputs = 6, kStride = kPanelOutputs + 8;
  std::vector<BFloat16> pairs(kPairInputs * kPanelOutputs);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].bits = static_cast<uint16_t>(0x3f00 + i);
  std::vector<float> widened(kPairInputs * kStride);
  WidenPairs(pairs.data(), kPairInputs, {widened.data(), kStride}, GetParam());
  for (int64_t i = 0; i < kPairInputs; ++i) {
    for (int64_t output = 0; output < kPanelOutputs; ++output) {
      ASSERT_EQ(widened[i * kStride + output], Widened(pairs[(i / 2 * kPanelOutputs + output) * 2 + i % 2])) << i;
    }
  }
}

TEST_P(Int8ProductsTest, RoundsToTheNearestBFloat16AndHalvesToEven) {
  const std::vector<float> halves = {Float(0x3f808000), Float(0x3f818000), Float(0xbf808000), Float(0x3f808001), 0};
  std::vector<BFloat16> rounded(halves.size());
  RoundToBFloat16(halves.data(), static_cast<int64_t>(halves.size()), rounded.data(), GetParam());
  const std::vector<uint16_t> expected = {0x3f80, 0x3f82, 0xbf80, 0x3f81, 0};
  for (size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(rounded[i].bits, expected[i]) << i;

  const std::vector<float> numbers = Random(77);
  rounded.resize(numbers.size());
  RoundToBFloat16(numbers.data(), static_cast<int64_t>(numbers.size()), rounded.data(), GetParam());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(Widened(rounded[i]), numbers[i], std::abs(numbers[i]) / 256) << i;
  }
}

TEST_P(Int8ProductsTest, FinishesWithBiasGeluAndRows) {
  for (const int64_t columns : {1, 15, 16, 37, 64}) {
    constexpr int64_t kRows = 3;
    const int64_t stride = columns + 2;
    const std::vector<float> rows = Random(kRows * stride), bias = Random(columns), others = Random(kRows * columns);
    for (const int has : {0, 1, 2, 3}) {
      const bool has_bias = has % 2 == 1, has_rows = has >= 2;
      for (const bool gelu : {false, true}) {
        std::vector<float> found = rows;
        const Summands added = {.bias = has_bias ? bias.data() : nullptr,
                                .rows = {has_rows ? others.data() : nullptr, columns}};
        FinishProduct({found.data(), stride}, kRows, columns, added, gelu, GetParam());
        for (int64_t i = 0; i < kRows * stride; ++i) {
          const int64_t column = i % stride;
          double expected = rows[i];
          if (column < columns) {
            if (has_bias) expected = rows[i] + bias[column];
            if (gelu) expected = expected * (1 + std::erf(expected / std::sqrt(2.0))) / 2;
            if (has_rows) expected += others[i / stride * columns + column];
          }
          ASSERT_NEAR(found[i], expected, 2e-6) << columns << " columns, number " << i;
        }
      }
    }
  }
}

TEST_P(Int8ProductsTest, GeluOfLargeNumbersIsTheNumberOrZero) {
  std::vector<float> row = {-1e4F, -30, -6, 0, 6, 30, 1e4F};
  const std::vector<float> expected = {0, 0, -6 * 9.8659e-10F, 0, 6, 30, 1e4F};
  FinishProduct({row.data(), 7}, 1, 7, /*added=*/{}, /*gelu=*/true, GetParam());
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], expected[i], 1e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Sets, Int8ProductsTest, ::testing::ValuesIn(InstructionSetsHere()),
                         [](const auto& info) { return InstructionSetName(info.param); });

}  // namespace
}  // namespace longshort::models::cpu
