#include "models/families/cvt/cvt_network.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/cvt/cvt_config.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/ops/factory_calls.h"

namespace longshort::models::cvt_network_test {

double LargestDifference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// Configurations that differ in every switch.
std::vector<CvtConfig> Configs() {
  CvtConfig separate = SmallCvt(), wide_kernels = SmallCvt(), small_windows = SmallCvt();
  separate.shared_dual_norm = false;
  wide_kernels.projection_kernel = 1;
  wide_kernels.dynamic_projection_kernel = 5;
  wide_kernels.feed_forward_ratio = 2;
  small_windows.stages[0].window_size = 1;
  small_windows.stages[1].window_size = 16;  // wider than its grid
  return {SmallCvt(), separate, wide_kernels, small_windows};
}

TEST(CvtNetwork, PreparedForServingItComputesTheSame) {
  for (const CvtConfig& config : Configs()) {
    const CvtNetwork trained = NetworkOver(config, RandomCvtTensors(config, 1, at::kDouble));
    CvtNetwork served = trained;
    served.PrepareForServing();
    const at::Tensor images = RandomImages(2, 45, 30, 2, at::kDouble);
    EXPECT_LT(LargestDifference(served.Logits(images, nullptr), trained.Logits(images, nullptr)), 1e-11);
  }
}

TEST(CvtNetwork, MakesAllTensorsOnTheDeviceOfItsWeights) {
  const CvtConfig config = SmallCvt();
  const auto tensors = RandomCvtTensors(config, 1);
  const at::Tensor images = RandomImages(1, 45, 30, 2);
  EXPECT_THAT(FactoriesWithoutDevice([&] {
                CvtNetwork network = NetworkOver(config, tensors);
                network.PrepareForServing();
                network.Logits(images, nullptr);
              }),
              testing::IsEmpty());
}

// Images of every size, square or not, down to one token: 3 x 3 pixels become 1 x 1 tokens.
TEST(CvtNetwork, AnImageComesOutTheSameAloneAndInABatch) {
  const CvtConfig config = SmallCvt();
  const CvtNetwork network = NetworkOver(config, RandomCvtTensors(config, 3, at::kDouble));
  for (const auto& [height, width] : {std::pair{45, 30}, {30, 45}, {64, 64}, {3, 70}, {3, 3}}) {
    ASSERT_TRUE(CheckCvtImageSize(config, height, width).ok());
    const at::Tensor images = RandomImages(3, height, width, 4, at::kDouble);
    const at::Tensor together = network.Logits(images, nullptr);
    ASSERT_EQ(together.sizes(), at::IntArrayRef({3, 5}));
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor alone = network.Logits(images.narrow(0, i, 1), nullptr);
      EXPECT_LT(LargestDifference(together[i], alone[0]), 1e-12) << height << " x " << width;
    }
  }
}

// After one pass with momentum 1, the running statistics are those of the batch, except for the variance's factor
// n / (n - 1). Serving then computes nearly the same results as training for the same images.
TEST(CvtNetwork, RunningStatisticsMoveToThoseOfTheBatch) {
  const CvtConfig config = SmallCvt();
  std::map<std::string, at::Tensor> tensors = RandomCvtTensors(config, 5, at::kDouble);
  const CvtNetwork network = NetworkOver(config, tensors);
  const at::Tensor images = RandomImages(8, 64, 64, 6, at::kDouble);
  const at::Tensor before = tensors.at("stages.1.blocks.0.attn.to_v.bn.running_mean").clone();

  BatchStatistics statistics;
  const at::Tensor in_training = network.Logits(images, &statistics);
  ASSERT_EQ(statistics.means.size(), 9);  // 3 blocks with a norm each for queries, keys and values
  EXPECT_TRUE(at::equal(tensors.at("stages.1.blocks.0.attn.to_v.bn.running_mean"), before));
  EXPECT_GT(LargestDifference(in_training, network.Logits(images, nullptr)), 0.01);

  network.UpdateRunningStatistics(statistics, 0.25);
  const at::Tensor moved = before * 0.75 + statistics.means.back() * 0.25;
  EXPECT_LT(LargestDifference(tensors.at("stages.1.blocks.0.attn.to_v.bn.running_mean"), moved), 1e-14);

  network.UpdateRunningStatistics(statistics, 1.0);
  EXPECT_LT(LargestDifference(in_training, network.Logits(images, nullptr)), 0.01);
}

bool IsRunningStatistic(const std::string& name) {
  return name.ends_with(".running_mean") || name.ends_with(".running_var");
}

TEST(CvtNetwork, GradientsReachEveryParameterAndNoRunningStatistic) {
  CvtConfig config = SmallCvt();
  config.shared_dual_norm = false;
  const std::map<std::string, at::Tensor> tensors = RandomCvtTensors(config, 7);
  for (const auto& [name, tensor] : tensors) tensor.requires_grad_(!IsRunningStatistic(name));
  BatchStatistics statistics;
  const at::Tensor images = RandomImages(2, 45, 30, 8);
  (NetworkOver(config, tensors).Logits(images, &statistics)).square().sum().backward();
  for (const auto& [name, tensor] : tensors) {
    // They add the same to every token, which the batch norm or the softmax over tokens behind them takes away.
    const bool shifts_all = name.ends_with("depthwise.bias") || name.ends_with("to_dyn.pointwise.bias");
    EXPECT_EQ(tensor.grad().defined(), !IsRunningStatistic(name)) << name;
    if (!shifts_all && tensor.grad().defined()) {
      EXPECT_GT(tensor.grad().abs().max().item<float>(), 1e-7f) << name;
    }
  }
}

}  // namespace longshort::models::cvt_network_test
