// The row kernels on the tested device, against plain sums in double precision.

#include "models/ops/rows/rows.h"

#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::rows_test {

// Row: element type of products.
template <typename Row>
class GpuRows : public ::testing::Test {
 protected:
  // The allowed difference of a result: for bfloat16, half of the last of its 8 bits, and a little for the sum.
  template <typename T = Row>
  static double Bound(double expected) {
    return 1e-5 + (sizeof(T) == 4 ? 0 : std::abs(expected) / 256);
  }

  struct Matrix {
    std::vector<float> values;  // [rows * stride]
    Rows rows;
    float At(int64_t row, int64_t column) const { return values[row * rows.stride + column]; }
  };
  // Rows are `stride` elements apart. `first`: element of the aligned allocation at which the first row begins.
  template <typename T = Row>
  Matrix Random(int64_t rows, int64_t stride, int64_t first = 0) {
    const std::vector<T> elements = RandomElements<T>(random_, first + rows * stride);
    const std::vector<float> values = Floats(elements);
    return {.values = {values.begin() + first, values.end()},
            .rows = {.data = arrays_.Put(elements) + first, .stride = stride}};
  }
  template <typename T = Row>
  Rows Output(int64_t rows, int64_t stride) {
    return {.data = arrays_.Make<T>(rows * stride), .stride = stride};
  }
  std::vector<float> RandomFloats(int64_t count) { return RandomElements<float>(random_, count); }
  const float* Put(const std::vector<float>& values) { return arrays_.Put(values); }

  // Checks expected(row, column) of every element, and that nothing was written outside the rows.
  template <typename T = Row, typename Expected>
  void Check(const Rows& output, int64_t rows, int width, const Expected& expected) {
    const std::vector<float> got = Floats(arrays_.Get(static_cast<const T*>(output.data), rows * output.stride));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t c = 0; c < output.stride; ++c) {
        const float value = got[i * output.stride + c];
        if (c < width) {
          ASSERT_NEAR(value, expected(i, c), Bound<T>(expected(i, c)))
              << "row " << i << ", column " << c << " of " << width;
        } else {
          ASSERT_TRUE(std::isnan(value)) << "a write past row " << i;
        }
      }
    }
  }

  // Widths that are read in vectors, widths that are not, and widths larger than a thread block.
  const std::vector<int> widths_ = {1, 7, 24, 130, 516};
  std::mt19937_64 random_{1};
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};
using RowTypes = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuRows, RowTypes);

TYPED_TEST(GpuRows, EmbedsTokens) {
  const std::vector<int64_t> tokens = {4, 0, 4, 2};
  for (const int width : this->widths_) {
    for (const bool copies : {false, true}) {
      const std::vector<float> table = this->RandomFloats(5 * width);
      const Rows output = this->template Output<float>(4, width + width % 2);
      const Rows copy = this->template Output<BFloat16>(4, width + 3);
      this->arrays_.Launch(EmbedRowsCall({.table = this->Put(table),
                                          .tokens = this->arrays_.Put(tokens),
                                          .count = 4,
                                          .width = width,
                                          .scale = 1.5f,
                                          .output = output,
                                          .copy = copies ? copy : Rows{nullptr, 0}}));
      const auto expected = [&](int64_t i, int64_t c) { return 1.5 * table[tokens[i] * width + c]; };
      this->template Check<float>(output, 4, width, expected);
      this->template Check<BFloat16>(copy, 4, copies ? width : 0, expected);
    }
  }
}

// Rows may be misaligned for vectors.
TYPED_TEST(GpuRows, AddsRowsThatBeginAnywhere) {
  constexpr int kTestedWidth = 8;
  for (const int odd : {0, 1, 2, 3}) {
    for (const bool gap : {false, true}) {
      const auto first = [&](int part) { return part == odd && !gap ? 1 : 0; };
      const auto stride = [&](int part) { return kTestedWidth + (part == odd && gap ? 1 : 0); };
      const auto input = this->template Random<float>(3, stride(0), first(0));
      const auto addend = this->Random(3, stride(1), first(1));
      const auto output = this->Random(3, stride(2), first(2));
      const auto normalized = this->template Random<float>(3, stride(2), first(2));
      const auto copy = this->template Random<BFloat16>(3, stride(3), first(3));
      const std::vector<int64_t> indices = {2, 0, 1};
      this->arrays_.Launch(GatherRowsCall({.row = kTypeOf<TypeParam>,
                                           .input = input.rows,
                                           .addend = addend.rows,
                                           .addend_bias = nullptr,
                                           .indices = this->arrays_.Put(indices),
                                           .count = 3,
                                           .width = kTestedWidth,
                                           .output = output.rows}));
      const auto expect = [&]<typename T>(const T* rows, int part, const auto& expected) {
        const std::vector<float> got = Floats(this->arrays_.Get(rows, 2 * stride(part) + kTestedWidth));
        for (int64_t i = 0; i < 3; ++i) {
          for (int c = 0; c < kTestedWidth; ++c) {
            ASSERT_NEAR(got[i * stride(part) + c], expected(i, c), this->template Bound<T>(expected(i, c)))
                << "part " << odd;
          }
        }
      };
      const auto sum = [&](int64_t i, int64_t c) { return double{input.At(i, c)} + addend.At(i, c); };
      expect(static_cast<const TypeParam*>(output.rows.data), 2,
             [&](int64_t i, int64_t c) { return sum(indices[i], c); });

      const std::vector<float> gain(kTestedWidth, 1), bias(kTestedWidth, 0);
      this->arrays_.Launch(NormRowsCall({.addend_type = kTypeOf<TypeParam>,
                                         .input = input.rows,
                                         .addend = addend.rows,
                                         .addend_bias = nullptr,
                                         .norm = {.gain = this->Put(gain), .bias = this->Put(bias)},
                                         .epsilon = 1e-5f,
                                         .count = 3,
                                         .width = kTestedWidth,
                                         .output = normalized.rows,
                                         .copy = copy.rows}));
      const auto expected = [&](int64_t i, int64_t c) {
        double mean = 0, variance = 0;
        for (int k = 0; k < kTestedWidth; ++k) mean += sum(i, k) / kTestedWidth;
        for (int k = 0; k < kTestedWidth; ++k) variance += std::pow(sum(i, k) - mean, 2) / kTestedWidth;
        return (sum(i, c) - mean) / std::sqrt(variance + 1e-5);
      };
      expect(static_cast<const float*>(normalized.rows.data), 2, expected);
      expect(static_cast<const BFloat16*>(copy.rows.data), 3, expected);
    }
  }
}

TYPED_TEST(GpuRows, NormalizesSums) {
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    for (const int width : this->widths_) {
      const int64_t rows = 6;
      const auto addend = this->Random(rows, 2 * width);
      const std::vector<float> addend_bias = this->RandomFloats(width), gain = this->RandomFloats(width),
                               bias = this->RandomFloats(width);
      for (const bool adds : {false, true}) {
        for (const bool in_place : {false, true}) {
          const auto input = this->template Random<float>(rows, width);
          const Rows output = in_place ? input.rows : this->template Output<float>(rows, width + 4);
          const Rows copy = this->template Output<BFloat16>(rows, width + 1);
          this->arrays_.Launch(NormRowsCall({.addend_type = kTypeOf<TypeParam>,
                                             .input = input.rows,
                                             .addend = adds ? addend.rows : Rows{nullptr, 0},
                                             .addend_bias = adds ? this->Put(addend_bias) : nullptr,
                                             .norm = {.gain = this->Put(gain), .bias = this->Put(bias)},
                                             .epsilon = 1e-5f,
                                             .count = rows,
                                             .width = width,
                                             .output = output,
                                             .copy = in_place ? Rows{nullptr, 0} : copy}));
          const auto sum = [&](int64_t i, int64_t c) {
            return input.At(i, c) + (adds ? double{addend.At(i, c)} + addend_bias[c] : 0.0);
          };
          std::vector<double> means(rows), deviations(rows);
          for (int64_t i = 0; i < rows; ++i) {
            double variance = 0;
            for (int c = 0; c < width; ++c) means[i] += sum(i, c) / width;
            for (int c = 0; c < width; ++c) variance += std::pow(sum(i, c) - means[i], 2) / width;
            deviations[i] = std::sqrt(variance + 1e-5);
          }
          const auto expected = [&](int64_t i, int64_t c) {
            return (sum(i, c) - means[i]) / deviations[i] * gain[c] + bias[c];
          };
          this->template Check<float>(output, rows, width, expected);
          this->template Check<BFloat16>(copy, rows, in_place ? 0 : width, expected);
        }
      }
    }
  }
}

TYPED_TEST(GpuRows, ActivatesInPlace) {
  for (const int width : this->widths_) {
    for (const RowActivation activation : {RowActivation::kGelu, RowActivation::kRelu}) {
      for (const bool adds : {false, true}) {
        const auto input = this->Random(3, width);
        const std::vector<float> bias = this->RandomFloats(width);
        this->arrays_.Launch(ActivateRowsCall({.row = kTypeOf<TypeParam>,
                                               .activation = activation,
                                               .rows = input.rows,
                                               .bias = adds ? this->Put(bias) : nullptr,
                                               .count = 3,
                                               .width = width}));
        this->Check(input.rows, 3, width, [&](int64_t i, int64_t c) {
          const double x = input.At(i, c) + (adds ? double{bias[c]} : 0.0);
          return activation == RowActivation::kRelu ? std::max(x, 0.0) : x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
        });
      }
    }
  }
}

TYPED_TEST(GpuRows, GathersTheWantedOnes) {
  const std::vector<int64_t> indices = {5, -1, 0, 5};
  for (const int width : this->widths_) {
    const auto input = this->template Random<float>(6, width + 4);
    const auto addend = this->Random(6, width);
    const std::vector<float> bias = this->RandomFloats(width);
    for (const bool adds : {false, true}) {
      const Rows output = this->Output(4, width);
      this->arrays_.Launch(GatherRowsCall({.row = kTypeOf<TypeParam>,
                                           .input = input.rows,
                                           .addend = adds ? addend.rows : Rows{nullptr, 0},
                                           .addend_bias = adds ? this->Put(bias) : nullptr,
                                           .indices = this->arrays_.Put(indices),
                                           .count = 4,
                                           .width = width,
                                           .output = output}));
      const std::vector<float> got = Floats(this->arrays_.Get(static_cast<const TypeParam*>(output.data), 4 * width));
      for (size_t i = 0; i < indices.size(); ++i) {
        for (int c = 0; c < width; ++c) {
          const float value = got[i * width + c];
          if (indices[i] < 0) {
            EXPECT_TRUE(std::isnan(value));
          } else {
            const double sum = input.At(indices[i], c) + (adds ? double{addend.At(indices[i], c)} + bias[c] : 0.0);
            EXPECT_NEAR(value, sum, this->Bound(sum));
          }
        }
      }
    }
  }
}

}  // namespace longshort::models::cuda::rows_test
