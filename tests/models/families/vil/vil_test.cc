#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/family.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_network.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/vil/random_vil.h"

namespace longshort::models::vil_test {

using Words = std::vector<std::string>;

constexpr const char* kStages = "l1,h2,d8,n1,s1,g1,p2,f4,a0,r2_l2,h2,d12,n1,s1,g1,p2,f2,a1,r3_l3,h4,d16,n1,s0,g0,p2";

// A model directory that a test may spoil.
class VilTest : public ::testing::Test {
 protected:
  VilTest() : config_(VilOf(kStages, 16)), tensors_(RandomVilTensors(config_, 1)) {
    directory_.Write("config.json", ToJson(config_));
  }

  absl::StatusOr<ClassifierWeights> LoadWeights() const {
    std::vector<NamedTensor> named;
    for (const auto& [name, tensor] : tensors_) named.push_back(AsNamed(name, tensor));
    if (absl::Status status = WriteSafetensors(directory_.File("model.safetensors"), named); !status.ok()) {
      return status;
    }
    const auto opened = OpenModelDirectory(directory_.path());
    if (!opened.ok()) return opened.status();
    return LoadVil(*opened, {.threads = 1});
  }
  ClassifierWeights::Replica Load() const {
    const auto weights = LoadWeights();
    return weights.ok() ? weights->NewReplica({}) : weights.status();
  }

  static ClassifierItem Image(const at::Tensor& image) {
    const float* const values = image.const_data_ptr<float>();
    return ImageItem{.height = image.size(1), .width = image.size(2), .values = {values, values + image.numel()}};
  }

  const TemporaryDirectory directory_;
  VilConfig config_;
  TensorsByName tensors_;
};

TEST_F(VilTest, RefusesWeightsThatAreCutWhileTheyAreRead) {
  ASSERT_THAT(Load(), IsOk());
  const auto opened = OpenModelDirectory(directory_.path());
  ASSERT_THAT(opened, IsOk());
  std::filesystem::resize_file(opened->path + "/model.safetensors",
                               std::filesystem::file_size(opened->path + "/model.safetensors") - 4);
  EXPECT_EQ(LoadVil(*opened, {.threads = 1}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(VilTest, ServesTheLogitsOfTheNetwork) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const at::Tensor images = RandomImages(config_, 3, 2);
  const at::Tensor expected = Logits(NetworkOver(config_, tensors_), images).contiguous();
  const std::vector<ClassifierItem> items = {Image(images[0]), Image(images[1]), Image(images[2])};
  const auto result = (*classifier)->Classify({&items[0], &items[1], &items[2]});
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->rows.size(), 3 * 5);
  for (int64_t i = 0; i < 15; ++i) EXPECT_NEAR(result->rows[i], expected.const_data_ptr<float>()[i], 1e-5);
}

TEST_F(VilTest, TheHeadOfItsFeaturesGivesTheLogits) {
  // With the mean of all tokens, and with a token that is classified.
  for (const std::string stages :
       {kStages, "l1,h2,d8,n1,s1,g1,p2,f4,a0,r2_l2,h2,d12,n1,s1,g1,p2,f2,a1,r3_l3,h4,d16,n1,s0,g1,p2"}) {
    config_ = VilOf(stages, 16);
    tensors_ = RandomVilTensors(config_, 1);
    directory_.Write("config.json", ToJson(config_));
    const auto classifier = Load();
    ASSERT_THAT(classifier, IsOk());
    const at::Tensor images = RandomImages(config_, 2, 2);
    const std::vector<ClassifierItem> items = {Image(images[0]), Image(images[1])};
    const auto result = (*classifier)->Run({&items[0], &items[1]}, ClassifierOutput::kFeatures);
    ASSERT_THAT(result, IsOk());
    const VilNetwork network = NetworkOver(config_, tensors_);
    const at::Tensor found = network.head(at::tensor(result->rows).view({2, config_.stages.back().width}));
    EXPECT_LT((found - Logits(network, images)).abs().max().item<double>(), 1e-5);
  }
}

// Each is a micro-batch by itself, on a thread of its own.
TEST_F(VilTest, ABatchOfLargeImagesGivesEachWhatTheNetworkGives) {
  config_ = VilOf(kStages, 224);
  tensors_ = RandomVilTensors(config_, 1);
  directory_.Write("config.json", ToJson(config_));
  const auto weights = LoadWeights();
  ASSERT_THAT(weights, IsOk());
  const auto one = weights->NewReplica({}), two = weights->NewReplica({.threads = 2});
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  const at::Tensor images = RandomImages(config_, 3, 2);
  const at::Tensor expected = Logits(NetworkOver(config_, tensors_), images).contiguous();
  const std::vector<ClassifierItem> items = {Image(images[0]), Image(images[1]), Image(images[2])};
  for (Classifier* const classifier : {one->get(), two->get()}) {
    const auto result = classifier->Classify({&items[0], &items[1], &items[2]});
    ASSERT_THAT(result, IsOk());
    for (int64_t i = 0; i < 15; ++i) EXPECT_NEAR(result->rows[i], expected.const_data_ptr<float>()[i], 1e-5);
  }
}

TEST_F(VilTest, SaysWhatItIsAndWhatABatchCosts) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const ClassifierInfo& info = (*classifier)->info();
  int64_t parameters = 0, multiply_adds = 0;
  for (const auto& [name, tensor] : tensors_) parameters += tensor.numel();
  for (const StageCost& cost : VilCosts(config_)) multiply_adds += cost.multiply_adds;
  EXPECT_EQ(info.architecture, "vil");
  EXPECT_EQ(info.input, ClassifierInput::kImage);
  EXPECT_EQ(info.classes, 5);
  EXPECT_EQ(info.channels, 3);
  EXPECT_EQ(info.parameters, parameters);

  const ClassifierItem image = Image(RandomImages(config_, 1, 2)[0]);
  const auto two = (*classifier)->Classify({&image, &image});
  ASSERT_THAT(two, IsOk());
  EXPECT_EQ(two->counts.multiply_adds, 2 * multiply_adds);
}

TEST_F(VilTest, TakesImagesOfItsSizeOnly) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  for (const auto& [height, width] : std::map<int64_t, int64_t>{{32, 32}, {16, 15}, {15, 16}, {1, 1}}) {
    const ClassifierItem image =
        ImageItem{.height = height, .width = width, .values = std::vector<float>(3 * height * width)};
    EXPECT_THAT((*classifier)->Classify({&image}),
                Refuses(Words{std::to_string(height) + " x " + std::to_string(width), "takes 16 x 16"}));
  }
}

TEST_F(VilTest, NamesATensorThatDoesNotFit) {
  tensors_.erase("layer2.1.attn.qkv.bias");
  EXPECT_THAT(Load(), Refuses(Words{"model.safetensors", "'layer2.1.attn.qkv.bias' is missing"}));
}

TEST_F(VilTest, NamesTheStageThatCannotBeRun) {
  std::string text = ToJson(config_);
  text.replace(text.find("g1,p2,f2"), 8, "g2,p2,f2");
  directory_.Write("config.json", text);
  EXPECT_THAT(Load(), Refuses(Words{"config.json: stages: stage 2: g is 2"}));
}

TEST_F(VilTest, HasAsManyLabelsAsClasses) {
  directory_.Write("labels.txt", "rose\ntulip\ndaisy\nlily\n");
  EXPECT_THAT(Load(), Refuses(Words{"labels.txt"}));
  directory_.Write("labels.txt", "rose\ntulip\ndaisy\nlily\nsunflower\n");
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  EXPECT_EQ((*classifier)->info().labels[4], "sunflower");
}

}  // namespace longshort::models::vil_test
