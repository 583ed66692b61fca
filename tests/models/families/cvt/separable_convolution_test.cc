#include <cmath>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/families/cvt/cvt_attention.h"

namespace longshort::models::separable_convolution_test {

double LargestDifference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

class RandomTensors {
 public:
  explicit RandomTensors(uint64_t seed) : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}
  at::Tensor Normal(at::IntArrayRef shape) { return at::randn(shape, generator_, at::kDouble); }
  at::Tensor Positive(at::IntArrayRef shape) { return Normal(shape).exp(); }

 private:
  at::Generator generator_;
};

// Three channels to two, in double precision.
SeparableConvolution Convolution(RandomTensors& random, int64_t side) {
  return {.kernel = random.Normal({3, 1, side, side}),
          .bias = random.Normal({3}),
          .standardization_epsilon = {},
          .norm = {},
          .pointwise = {.weight = random.Normal({2, 3}), .bias = random.Normal({2})}};
}

SeparableConvolution NormedConvolution(RandomTensors& random, int64_t side) {
  SeparableConvolution convolution = Convolution(random, side);
  convolution.norm = BatchNorm{.gain = random.Normal({3}),
                               .bias = random.Normal({3}),
                               .running_mean = random.Normal({3}),
                               .running_variance = random.Positive({3}),
                               .epsilon = 1e-5};
  return convolution;
}

// The depthwise convolution by its definition: tokens [batch, height * width, d], zeros around the grid.
at::Tensor DepthwiseByLoop(const SeparableConvolution& convolution, const at::Tensor& tokens, const TokenGrid& grid) {
  const int64_t side = convolution.kernel.size(2);
  const at::Tensor result = at::empty_like(tokens);
  for (int64_t y = 0; y < grid.height; ++y) {
    for (int64_t x = 0; x < grid.width; ++x) {
      at::Tensor sum = convolution.bias.clone();
      for (int64_t tap = 0; tap < side * side; ++tap) {
        const int64_t ty = y + tap / side - side / 2, tx = x + tap % side - side / 2;
        if (ty < 0 || ty >= grid.height || tx < 0 || tx >= grid.width) continue;
        const at::Tensor weights = convolution.kernel.select(1, 0).select(1, tap / side).select(1, tap % side);
        sum = sum + weights * tokens.select(1, ty * grid.width + tx);
      }
      result.select(1, y * grid.width + x).copy_(sum);
    }
  }
  return result;
}

TEST(SeparableConvolution, ConvolvesAlongTheGridThenAcrossChannels) {
  RandomTensors random(1);
  for (const int64_t side : {1, 3, 5}) {
    for (const TokenGrid grid : {TokenGrid{4, 7}, TokenGrid{1, 1}, TokenGrid{6, 2}}) {
      const SeparableConvolution convolution = Convolution(random, side);
      const at::Tensor tokens = random.Normal({2, grid.tokens(), 3});
      const at::Tensor expected = convolution.pointwise(DepthwiseByLoop(convolution, tokens, grid));
      EXPECT_LT(LargestDifference(convolution(tokens, grid, nullptr), expected), 1e-12) << side;
    }
  }
}

TEST(SeparableConvolution, FoldedBatchNormComputesTheSame) {
  RandomTensors random(2);
  const TokenGrid grid{5, 4};
  const SeparableConvolution trained = NormedConvolution(random, 3);
  SeparableConvolution served = trained;
  served.PrepareForServing();
  EXPECT_FALSE(served.norm.has_value());
  const at::Tensor tokens = random.Normal({2, grid.tokens(), 3});
  EXPECT_LT(LargestDifference(served(tokens, grid, nullptr), trained(tokens, grid, nullptr)), 1e-12);
}

TEST(SeparableConvolution, StandardisedOnceOrAtEachUseComputesTheSame) {
  RandomTensors random(3);
  const TokenGrid grid{5, 4};
  SeparableConvolution trained = Convolution(random, 3);
  trained.standardization_epsilon = 1e-5;
  SeparableConvolution served = trained;
  served.PrepareForServing();
  EXPECT_FALSE(served.standardization_epsilon.has_value());
  const at::Tensor tokens = random.Normal({2, grid.tokens(), 3});
  EXPECT_LT(LargestDifference(served(tokens, grid, nullptr), trained(tokens, grid, nullptr)), 1e-14);
}

// Taps 0..8 have mean 4 and unbiased variance 60/8.
TEST(StandardizedKernel, HasMeanZeroAndTheUnbiasedDeviationPlusEpsilonBelow) {
  const at::Tensor kernel = at::arange(9, at::kDouble).view({1, 1, 3, 3});
  const at::Tensor expected = (at::arange(9, at::kDouble) - 4.0) / (std::sqrt(7.5) + 0.25);
  EXPECT_LT(LargestDifference(StandardizedKernel(kernel, 0.25).flatten(), expected), 1e-15);
}

TEST(StandardizedKernel, ConstantTapsBecomeZeroWhateverTheirNumber) {
  for (const int64_t side : {1, 3}) {
    const at::Tensor kernel = at::full({2, 1, side, side}, 0.7, at::kDouble);
    EXPECT_LT(StandardizedKernel(kernel, 1e-5).abs().max().item<double>(), 1e-10);
  }
}

TEST(BatchNorm, TrainingNormalisesByTheBatchAndReportsItsStatistics) {
  RandomTensors random(4);
  const BatchNorm norm = *NormedConvolution(random, 3).norm;
  const at::Tensor running_mean = norm.running_mean.clone(), running_variance = norm.running_variance.clone();
  const at::Tensor image = random.Normal({2, 3, 4, 5}) * 3.0 + 1.0;

  BatchStatistics statistics;
  const at::Tensor normed = norm(image, &statistics);

  const at::Tensor values = image.transpose(0, 1).flatten(1);  // [d, 40]
  const at::Tensor mean = values.mean(1);
  const at::Tensor squares = (values - mean.unsqueeze(1)).square().sum(1);
  ASSERT_EQ(statistics.means.size(), 1);
  EXPECT_LT(LargestDifference(statistics.means[0], mean), 1e-12);
  EXPECT_LT(LargestDifference(statistics.variances[0], squares / 39.0), 1e-12);
  const at::Tensor scale = norm.gain / (squares / 40.0 + norm.epsilon).sqrt();  // the biased variance
  const at::Tensor expected =
      (image - mean.view({1, 3, 1, 1})) * scale.view({1, 3, 1, 1}) + norm.bias.view({1, 3, 1, 1});
  EXPECT_LT(LargestDifference(normed, expected), 1e-12);

  EXPECT_TRUE(at::equal(norm.running_mean, running_mean));
  EXPECT_TRUE(at::equal(norm.running_variance, running_variance));
}

}  // namespace longshort::models::separable_convolution_test
