// Products of few rows on the tested device, against plain sums in double precision.

#include "models/ops/products/row_products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::row_products_test {

struct Problem {
  int64_t count = 1;
  int width = 24, outputs = 17;
  bool from_sums = false;  // else from rows
  bool has_norm = false, has_indices = false, has_inputs = false;
  bool has_bias = false, has_addend = false;
  RowActivation activation = RowActivation::kNone;
  ElementType result = ElementType::kFloat;

  std::string Text() const {
    return absl::StrCat(count, " rows of ", width, ", ", outputs, " outputs", from_sums ? ", sums" : "",
                        has_norm ? ", norm" : "", has_indices ? ", indices" : "", has_inputs ? ", inputs" : "",
                        has_bias ? ", bias" : "", has_addend ? ", addend" : "", ", activation ",
                        static_cast<int>(activation), ", result ", static_cast<int>(result));
  }
};

class GpuRowProducts : public ::testing::Test {
 protected:
  // Rows of normally distributed numbers, with gaps of NaN between them.
  template <typename Element>
  TestRows<Element> Random(int64_t rows, int width, int gap, float deviation = 1) {
    TestRows<Element> random(arrays_, width, width + gap);
    random.Add(rows, random_, deviation);
    random.Put();
    return random;
  }

  // Runs the problem, compares it, and returns its output.
  std::vector<float> Run(const Problem& problem) {
    SCOPED_TRACE(problem.Text());
    constexpr int kSums = 20;  // rows to choose from
    const auto matrix = Random<BFloat16>(problem.outputs, problem.width, 8, 0.3f);
    const auto rows = Random<BFloat16>(problem.count, problem.width, 16);
    // A variance of 1e-4, beside which the norm's epsilon counts.
    const auto sums =
        Random<float>(std::max<int64_t>(kSums, problem.count), problem.width, 4, problem.has_norm ? 0.01f : 3);
    const auto addend = Random<float>(problem.count, problem.outputs, 4);
    TestRows<float> inputs(arrays_, problem.width, problem.width + 4);
    inputs.AddNothing(problem.count);
    const std::vector<float> gain = RandomElements<float>(random_, problem.width);
    const std::vector<float> norm_bias = RandomElements<float>(random_, problem.width);
    const std::vector<float> bias = RandomElements<float>(random_, problem.outputs);
    std::vector<int64_t> indices(problem.count);
    for (int64_t i = 0; i < problem.count; ++i) indices[i] = problem.has_indices ? (7 * i + 3) % kSums : i;
    TestRows<float> floats(arrays_, problem.outputs, problem.outputs + 1);
    TestRows<BFloat16> halves(arrays_, problem.outputs, problem.outputs + 1);
    floats.AddNothing(problem.count);
    halves.AddNothing(problem.count);

    const bool is_float = problem.result == ElementType::kFloat;
    const Rows input_rows = inputs.Put(), output = is_float ? floats.Put() : halves.Put();
    arrays_.Launch(RowProductsCall(
        {.matrix = matrix.on_device(),
         .outputs = problem.outputs,
         .width = problem.width,
         .count = problem.count,
         .rows = problem.from_sums ? Rows{} : rows.on_device(),
         .sums = problem.from_sums ? sums.on_device() : Rows{},
         .indices = problem.has_indices ? arrays_.Put(indices) : nullptr,
         .norm = problem.has_norm ? NormWeights{arrays_.Put(gain), arrays_.Put(norm_bias)} : NormWeights{},
         .epsilon = 1e-5f,
         .inputs = problem.has_inputs ? input_rows : Rows{},
         .bias = problem.has_bias ? arrays_.Put(bias) : nullptr,
         .activation = problem.activation,
         .addend = problem.has_addend ? addend.on_device() : Rows{},
         .result = problem.result,
         .output = output}));

    const std::vector<float> got_inputs = inputs.Get(), got = is_float ? floats.Get() : halves.Get();
    for (int64_t i = 0; i < problem.count; ++i) {
      std::vector<double> x(rows.Row(i), rows.Row(i) + problem.width);
      if (problem.from_sums) {
        const float* const from = sums.Row(indices[i]);
        x = problem.has_norm ? Normalized(from, gain, norm_bias) : std::vector<double>(from, from + problem.width);
        for (int c = 0; c < problem.width; ++c) {
          const float input = got_inputs[i * problem.width + c];
          if (!problem.has_inputs) {
            EXPECT_TRUE(std::isnan(input));
            continue;
          }
          EXPECT_NEAR(input, x[c], 1e-5 * (1 + std::abs(x[c]))) << "input " << c << " of row " << i;
          // A number at a tie may round to either side, so the factor is the kernel's number.
          x[c] = ToFloat(ElementOf<BFloat16>(input));
        }
        if (!problem.has_inputs) {
          for (double& number : x) number = ToFloat(ElementOf<BFloat16>(static_cast<float>(number)));
        }
      }
      for (int o = 0; o < problem.outputs; ++o) {
        double sum = problem.has_bias ? bias[o] : 0, magnitude = std::abs(sum);
        for (int c = 0; c < problem.width; ++c) {
          sum += double{matrix.Row(o)[c]} * x[c];
          magnitude += std::abs(double{matrix.Row(o)[c]} * x[c]);
        }
        double expected = Activated(problem.activation, sum);
        if (problem.has_addend) expected += addend.Row(i)[o];
        // Rounding in float32 of each sum, then that of the result.
        const double bound = 2e-6 * (1 + magnitude) + (is_float ? 0 : std::abs(expected) / 256);
        EXPECT_NEAR(got[i * problem.outputs + o], expected, bound) << "output " << o << " of row " << i;
      }
    }
    return got;
  }

  static std::vector<double> Normalized(const float* row, const std::vector<float>& gain,
                                        const std::vector<float>& bias) {
    const auto width = static_cast<double>(gain.size());
    double variance = 0;
    const double mean = std::accumulate(row, row + gain.size(), 0.0) / width;
    for (size_t c = 0; c < gain.size(); ++c) variance += std::pow(row[c] - mean, 2) / width;
    std::vector<double> normalized;
    for (size_t c = 0; c < gain.size(); ++c) {
      normalized.push_back((row[c] - mean) / std::sqrt(variance + 1e-5) * gain[c] + bias[c]);
    }
    return normalized;
  }
  static double Activated(RowActivation activation, double x) {
    if (activation == RowActivation::kNone) return x;
    return activation == RowActivation::kRelu ? std::max(x, 0.0) : x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  }

  std::mt19937_64 random_{1};
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};

// Widths below a lane's 8 channels times 4 lanes, and beyond what the 16 warps load at once: 2,048. Rows beyond 16 have
// other thread blocks.
TEST_F(GpuRowProducts, AreThoseOfThePlainForm) {
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*device_, options);
    for (const int width : {8, 40, 520, 2088}) {
      for (const int outputs : {1, 16, 21}) Run({.count = 3, .width = width, .outputs = outputs});
    }
    for (const int64_t count : {1, 8, 9, 16, 17, 35}) Run({.count = count});
  }
}

TEST_F(GpuRowProducts, OfNormalizedRowsAreThoseOfThePlainForm) {
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*device_, options);
    for (const int width : {8, 136, 520, kMaxNormedWidth}) {
      Run({.count = 2, .width = width, .from_sums = true, .has_norm = true, .has_inputs = true});
    }
    for (const int64_t count : {1, 8, 9, 16, 17}) {
      Run({.count = count, .from_sums = true, .has_norm = true, .has_inputs = true, .has_bias = true});
    }
  }
}

TEST_F(GpuRowProducts, HaveEachPartOrNot) {
  for (int bits = 0; bits < 8; ++bits) {
    Run({.count = 5,
         .outputs = 33,
         .from_sums = true,
         .has_norm = (bits & 1) != 0,
         .has_indices = (bits & 2) != 0,
         .has_inputs = true,
         .has_bias = (bits & 4) != 0});
  }
  Run({.count = 5, .from_sums = true, .has_indices = true});
  for (const RowActivation activation : {RowActivation::kGelu, RowActivation::kRelu, RowActivation::kNone}) {
    for (const ElementType result : {ElementType::kFloat, ElementType::kBFloat16}) {
      for (const bool adds : {false, true}) {
        Run({.count = 11, .has_bias = !adds, .has_addend = adds, .activation = activation, .result = result});
      }
    }
  }
}

TEST_F(GpuRowProducts, OfTheWidestRowsFitTheSharedMemoryOfEveryChip) {
  const Problem widest = {.count = kFewRows, .width = kMaxNormedWidth, .outputs = 2, .from_sums = true};
  Run(widest);
  EXPECT_LE(RowProductsCall({.outputs = 2, .width = widest.width, .count = widest.count}).shape.shared_bytes, 99 << 10);
}

// One row, and the same row as the last of many, whose others are NaN.
TEST_F(GpuRowProducts, ARowsBitsDoNotDependOnTheOthers) {
  constexpr int kWidth = 584, kOutputs = 18;
  const auto matrix = Random<BFloat16>(kOutputs, kWidth, 0);
  const std::vector<float> gain = RandomElements<float>(random_, kWidth), bias = RandomElements<float>(random_, kWidth);
  const std::vector<float> row = RandomElements<float>(random_, kWidth);
  for (const bool from_sums : {false, true}) {
    std::optional<std::vector<float>> alone;
    for (const int64_t count : {1, 2, 8, 9, 16, 17}) {
      std::vector<float> sums((count - 1) * kWidth, NAN);
      sums.insert(sums.end(), row.begin(), row.end());
      std::vector<BFloat16> halves;
      for (const float number : sums) halves.push_back(ElementOf<BFloat16>(number));
      float* const output = arrays_.Make<float>(count * kOutputs);
      arrays_.Launch(RowProductsCall({.matrix = matrix.on_device(),
                                      .outputs = kOutputs,
                                      .width = kWidth,
                                      .count = count,
                                      .rows = from_sums ? Rows{} : Rows{arrays_.Put(halves), kWidth},
                                      .sums = from_sums ? Rows{arrays_.Put(sums), kWidth} : Rows{},
                                      .norm = {arrays_.Put(gain), arrays_.Put(bias)},
                                      .epsilon = 1e-5f,
                                      .output = {output, kOutputs}}));
      const std::vector<float> all = arrays_.Get(output, count * kOutputs);
      const std::vector<float> last(all.end() - kOutputs, all.end());
      if (!alone) alone = last;
      EXPECT_EQ(last, *alone) << count << " rows, from sums: " << from_sums;
      EXPECT_FALSE(std::isnan(last[0]));
    }
  }
}

}  // namespace longshort::models::cuda::row_products_test
