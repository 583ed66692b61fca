#include "models/families/vil/vil_network.h"

#include <string>
#include <variant>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/vil/vil_attention.h"
#include "models/families/vil/vil_config.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"
#include "tests/models/families/vil/random_vil.h"
#include "tests/models/ops/factory_calls.h"

namespace longshort::models::vil_network_test {

// Both kinds of attention and of positions, landmarks everywhere, two global tokens in the last stage; grids of 8, 4
// and 2 patches.
constexpr const char* kStages = "l1,h2,d8,n1,s1,g1,p2,f4,a0,r2_l2,h2,d12,n2,s1,g1,p2,f2,a1,r3_l3,h4,d16,n1,s0,g2,p2,a0";

double Difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(VilNetwork, AnImageHasTheSameLogitsInAnyBatch) {
  const VilConfig config = VilOf(kStages, 16);
  const VilNetwork network = NetworkOver(config, RandomVilTensors(config, 1));
  const at::Tensor images = RandomImages(config, 5, 2);
  const at::Tensor together = Logits(network, images);
  ASSERT_EQ(together.sizes(), at::IntArrayRef({5, 5}));
  for (int64_t i = 0; i < 5; ++i) EXPECT_LT(Difference(Logits(network, images.narrow(0, i, 1))[0], together[i]), 1e-5);
}

TEST(VilNetwork, MakesAllTensorsOnTheDeviceOfItsWeights) {
  const VilConfig config = VilOf(kStages, 16);
  const TensorsByName tensors = RandomVilTensors(config, 1);
  const at::Tensor images = RandomImages(config, 1, 2);
  EXPECT_THAT(FactoriesWithoutDevice([&] { Logits(NetworkOver(config, tensors), images); }), testing::IsEmpty());
}

TEST(VilNetwork, KeepsAsManyBiasesForTheKernelsOfCpusAsItsConfigurationSays) {
  const VilConfig config = VilOf(kStages, 16);
  VilNetwork network = NetworkOver(config, RandomVilTensors(config, 1));
  TensorMove move(at::kCPU);
  network.MoveBy(move);
  int64_t kept = 0;
  for (const VilStageNetwork& stage : network.stages) {
    for (const VilPair& pair : stage.pairs) {
      const auto* const sparse = std::get_if<VilSparseAttention>(&pair.attention);
      const at::Tensor& bias =
          sparse != nullptr ? sparse->bias.for_kernel : std::get<VilFullAttention>(pair.attention).kernel_bias;
      if (bias.defined()) kept += bias.numel();
    }
  }
  EXPECT_EQ(kept, 1 * 2 * 16 * 64 + 1 * 4 * 9) << "windows of 4 x 4 in 8 x 8, and offsets of a grid of 2 x 2";
  EXPECT_EQ(kept, VilKernelBiasElements(config));
}

TEST(VilNetwork, KeepsTheBiasesOfAllPairsOfTokensWhereNoKernelOfCpusReadsTheirTable) {
  const VilConfig config = VilOf(kStages, 16);
  VilNetwork network = NetworkOver(config, RandomVilTensors(config, 1));
  TensorMove move(at::kCPU, at::kBFloat16);
  network.MoveBy(move);
  int64_t kept = 0;
  for (VilStageNetwork& stage : network.stages) {
    for (VilPair& pair : stage.pairs) {
      auto* const full = std::get_if<VilFullAttention>(&pair.attention);
      if (full == nullptr || !full->score_bias.defined()) continue;
      kept += static_cast<int64_t>(full->score_bias.storage().nbytes() / full->score_bias.element_size());
      EXPECT_EQ(full->score_bias.stride(2) % 16, 0) << "LibTorch would copy the bias in each call";
      EXPECT_FALSE(full->kernel_bias.defined());
      const at::Tensor tokens = at::randn({2, full->score_bias.size(2), full->output.inputs()}, at::kBFloat16);
      const at::Tensor attended = (*full)(tokens, /*added=*/{});
      full->score_bias.reset();
      EXPECT_TRUE(at::equal((*full)(tokens, /*added=*/{}), attended)) << "made in each call";
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(kept, VilPairBiasElements(config));
}

TEST(VilNetwork, PixelsThatFillNoPatchAreDropped) {
  const VilConfig config = VilOf(kStages, 19);  // grids of 9, 4 and 2: pixels 18, and of the first grid row 8, remain
  VilConfig divided = config;
  divided.stages[0].window_size = 3;
  const VilNetwork network = NetworkOver(divided, RandomVilTensors(divided, 1));
  const at::Tensor images = RandomImages(divided, 1, 2);
  const at::Tensor logits = Logits(network, images);
  const auto with_noise_in_column = [&](int64_t column) {
    at::Tensor changed = images.clone();
    changed.select(3, column).add_(100);
    return Logits(network, changed);
  };
  EXPECT_TRUE(at::equal(with_noise_in_column(18), logits));
  EXPECT_GT(Difference(with_noise_in_column(15), logits), 1e-3);
}

// x_pos_embed encodes the rows of a grid, y_pos_embed its columns.
TEST(VilNetwork, AbsolutePositionsHaveRowsFirst) {
  const VilConfig config = VilOf("l1,h1,d4,n0,p2_l2,n0_l3,n0", 8);
  TensorsByName tensors = RandomVilTensors(config, 1);
  const at::Tensor images = RandomImages(config, 1, 2);
  CpuItemAttention on_cpu;
  const auto first_stage = [&] { return NetworkOver(config, tensors).stages[0](images, on_cpu); };
  const at::Tensor before = first_stage();
  tensors["layer1.0.x_pos_embed"] = tensors["layer1.0.x_pos_embed"].clone();
  tensors["layer1.0.x_pos_embed"][0][2].add_(1.0);
  const at::Tensor change = first_stage() - before;
  for (int64_t token = 0; token < 17; ++token) {
    const bool in_row_2 = token >= 1 + 2 * 4 && token < 1 + 3 * 4;  // after the global token
    for (int64_t channel = 0; channel < 4; ++channel) {
      EXPECT_NEAR(change[0][token][channel].item<float>(), in_row_2 && channel < 2 ? 1.0 : 0.0, 1e-6);
    }
  }
}

TEST(VilNetwork, GlobalTokensEndWithTheirStage) {
  const VilConfig config = VilOf(kStages, 16);
  const VilStageNetwork stage = NetworkOver(config, RandomVilTensors(config, 1)).stages[0];
  CpuItemAttention on_cpu;
  const at::Tensor tokens = stage(RandomImages(config, 2, 2), on_cpu);
  const at::Tensor image = stage.Image(tokens);
  ASSERT_EQ(tokens.sizes(), at::IntArrayRef({2, 1 + 64, 8}));
  ASSERT_EQ(image.sizes(), at::IntArrayRef({2, 8, 8, 8}));
  EXPECT_TRUE(at::equal(image.select(2, 3).select(2, 5), tokens.select(1, 1 + 3 * 8 + 5)));
}

TEST(VilNetwork, PoolsTheFirstGlobalTokenOrAllTokens) {
  VilConfig config = VilOf(kStages, 16);
  const TensorsByName tensors = RandomVilTensors(config, 1);
  const at::Tensor images = RandomImages(config, 2, 2);
  const auto expected = [&](bool all) {
    const VilNetwork network = NetworkOver(config, tensors);
    at::Tensor hidden = images;
    CpuItemAttention on_cpu;
    for (size_t stage = 0; stage < 3; ++stage) {
      const at::Tensor tokens = network.stages[stage](hidden, on_cpu);
      hidden = stage < 2 ? network.stages[stage].Image(tokens) : network.norm(tokens);
    }
    return network.head(all ? hidden.sum(1) / 6 : hidden.select(1, 0));  // 2 global tokens and 4 patches
  };
  EXPECT_LT(Difference(Logits(NetworkOver(config, tensors), images), expected(false)), 1e-5);
  config.average_pooling = true;
  EXPECT_LT(Difference(Logits(NetworkOver(config, tensors), images), expected(true)), 1e-5);
}

// What is trained is what is served.
TEST(VilNetwork, GradientsReachEveryTensor) {
  VilConfig config = VilOf(kStages, 16);
  config.average_pooling = true;
  TensorsByName tensors = RandomVilTensors(config, 1, at::kDouble);
  for (auto& [name, tensor] : tensors) tensor.requires_grad_(true);
  const at::Tensor images = RandomImages(config, 3, 2).to(at::kDouble);
  Logits(NetworkOver(config, tensors), images).pow(2).sum().backward();
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    // A softmax over the patches does not see what is added to all of them.
    if (name.ends_with("to_dynamic_projection.bias")) continue;
    EXPECT_GT(tensor.grad().abs().max().item<double>(), 1e-6) << name;
  }
}

// Along a random direction, the gradient is what the logits change by.
TEST(VilNetwork, GradientsAreThoseOfTheLogits) {
  const VilConfig config = VilOf(kStages, 16);
  const at::Tensor images = RandomImages(config, 2, 2).to(at::kDouble);
  TensorsByName tensors = RandomVilTensors(config, 1, at::kDouble);
  const TensorsByName direction = RandomVilTensors(config, 3, at::kDouble);
  const auto loss = [&](double step) {
    TensorsByName moved;
    for (const auto& [name, tensor] : tensors) moved[name] = tensor + direction.at(name) * step;
    return Logits(NetworkOver(config, moved), images).pow(2).sum();
  };
  constexpr double kStep = 1e-5;
  const double difference = (loss(kStep) - loss(-kStep)).item<double>() / (2 * kStep);
  for (auto& [name, tensor] : tensors) tensor.requires_grad_(true);
  loss(0).backward();
  double slope = 0;
  for (const auto& [name, tensor] : tensors) slope += (tensor.grad() * direction.at(name)).sum().item<double>();
  EXPECT_NEAR(slope, difference, 1e-5 * std::abs(difference));
}

}  // namespace longshort::models::vil_network_test
