#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "models/families/family.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/cvt/random_cvt.h"

namespace longshort::models::cvt_test {

using Words = std::vector<std::string>;

class LoadedCvt : public testing::Test {
 protected:
  void SetUp() override {
    tensors_ = RandomCvtTensors(config_, 11);
    EXPECT_THAT(WriteImageModel(directory_, ToJson(config_), tensors_), IsOk());
  }

  ClassifierWeights::Replica Load() {
    LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory_.path()));
    const auto weights = LoadCvt(opened, {.threads = 1});
    return weights.ok() ? weights->NewReplica({}) : weights.status();
  }

  TemporaryDirectory directory_;
  CvtConfig config_ = SmallCvt();
  std::map<std::string, at::Tensor> tensors_;
};

TEST_F(LoadedCvt, GivesTheLogitsOfTheNetworkAndWhatTheyCost) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const at::Tensor images = RandomImages(3, 45, 30, 12);
  const std::vector<ClassifierItem> items = {ImageItemOf(images[0]), ImageItemOf(images[1]), ImageItemOf(images[2])};
  const auto result = (*classifier)->Classify(std::vector<const ClassifierItem*>{&items[0], &items[1], &items[2]});
  ASSERT_THAT(result, IsOk());
  const at::Tensor expected = NetworkOver(config_, tensors_).Logits(images, nullptr);
  ASSERT_EQ(result->rows.size(), 15);
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_NEAR(result->rows[i], expected.flatten()[i].item<float>(), 1e-5);
  }
  int64_t multiply_adds = 0;
  for (const StageCost& cost : CvtCosts(config_, 45, 30)) multiply_adds += cost.multiply_adds;
  EXPECT_EQ(result->counts.multiply_adds, 3 * multiply_adds);
}

TEST_F(LoadedCvt, TheHeadOfItsFeaturesGivesTheLogits) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const at::Tensor images = RandomImages(2, 45, 30, 12);
  const std::vector<ClassifierItem> items = {ImageItemOf(images[0]), ImageItemOf(images[1])};
  const auto result = (*classifier)->Run({&items[0], &items[1]}, ClassifierOutput::kFeatures);
  ASSERT_THAT(result, IsOk());
  const CvtNetwork network = NetworkOver(config_, tensors_);
  const at::Tensor found = network.head(at::tensor(result->rows).view({2, config_.stages.back().width}));
  EXPECT_LT((found - network.Logits(images, nullptr)).abs().max().item<double>(), 1e-5);
}

TEST_F(LoadedCvt, DescribesItself) {
  directory_.Write("labels.txt", "a\nb\nc\nd\ne\n");
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const ClassifierInfo& info = (*classifier)->info();
  EXPECT_EQ(info.architecture, "cvt");
  EXPECT_EQ(info.input, ClassifierInput::kImage);
  EXPECT_EQ(info.classes, 5);
  EXPECT_EQ(info.labels, Words({"a", "b", "c", "d", "e"}));
  EXPECT_EQ(info.parameters, CountParameters(CvtTensors(config_)));
  EXPECT_EQ(info.precision, "fp32");
  EXPECT_EQ(info.fingerprint.size(), 64);
  EXPECT_EQ(info.channels, 3);
}

TEST_F(LoadedCvt, RefusesABatchThatItCannotRunAndNamesTheImage) {
  const auto classifier = Load();
  ASSERT_THAT(classifier, IsOk());
  const ClassifierItem good = ImageItemOf(RandomImages(1, 45, 30, 13)[0]);
  const ClassifierItem turned = ImageItemOf(RandomImages(1, 30, 45, 13)[0]);
  const ClassifierItem grey = ImageItem{.height = 45, .width = 30, .values = std::vector<float>(45 * 30)};
  const ClassifierItem tiny = ImageItem{.height = 2, .width = 30, .values = std::vector<float>(3 * 2 * 30)};
  const ClassifierItem empty = ImageItem{};
  const ClassifierItem text = TokenItem{};
  const auto classify = [&](std::vector<const ClassifierItem*> items) { return (*classifier)->Classify(items); };
  EXPECT_THAT(classify({}), Refuses(Words{"at least 1"}));
  EXPECT_THAT(classify({&good, &turned}), Refuses(Words{"image 1", "30 x 45", "45 x 30"}));
  EXPECT_THAT(classify({&good, &grey}), Refuses(Words{"image 1", "1350 values", "3 channels"}));
  EXPECT_THAT(classify({&good, &text}), Refuses(Words{"item 1"}));
  EXPECT_THAT(classify({&empty}), Refuses(Words{"image 0", "0 values"}));
  EXPECT_THAT(classify({&tiny}), Refuses(Words{"2 x 30", "too small", "stage 1"}));
  EXPECT_THAT(classify({&good}), IsOk());
}

TEST_F(LoadedCvt, RefusesFilesThatDoNotFitTogether) {
  directory_.Write("labels.txt", "a\nb\n");
  EXPECT_THAT(Load(), Refuses(Words{"labels.txt"}));
  directory_.Write("labels.txt", "a\nb\nc\nd\ne\n");

  CvtConfig other = config_;
  other.stages[0].projection_rank = 4;
  directory_.Write("config.json", ToJson(other));
  EXPECT_THAT(Load(), Refuses(Words{"model.safetensors", "stages.0.blocks.0.attn.to_dyn.pointwise.weight"}));
}

}  // namespace longshort::models::cvt_test
