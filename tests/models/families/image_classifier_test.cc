#include <stdexcept>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/image_network.h"
#include "models/weights/safetensors.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::image_classifier_test {

// A network that is no network: its features are the sum of an image's values, and how many images it got with it, and
// its logits are those doubled. It fails on an image whose first value is negative. Images cost so many multiply-adds
// for each pixel.
class FakeNetwork final : public ImageNetwork {
 public:
  explicit FakeNetwork(int64_t multiply_adds) : ImageNetwork({.channels = 1}), multiply_adds_(multiply_adds) {}

  absl::Status CheckSize(int64_t, int64_t) const override { return absl::OkStatus(); }
  at::Tensor Features(const at::Tensor& images, ItemAttention&) const override {
    EXPECT_TRUE(c10::InferenceMode::is_enabled()) << "in whatever thread";
    const at::Tensor rows = images.flatten(1);
    if (rows.select(1, 0).min().item<float>() < 0) throw std::runtime_error("a negative pixel");
    return at::stack({rows.sum(1), at::full({rows.size(0)}, rows.size(0))}, 1);
  }
  const Linear& head() const override { return head_; }
  int64_t MultiplyAdds(int64_t height, int64_t width) const override { return multiply_adds_ * height * width; }
  std::shared_ptr<const ServedNetwork> Copy(TensorMove&) const override { return std::make_shared<FakeNetwork>(*this); }

 private:
  int64_t multiply_adds_;
  Linear head_{.weight = 2 * at::eye(2), .bias = {}};
};

// By the threads of a batch.
class ImageClassifierTest : public ::testing::TestWithParam<int> {
 protected:
  ImageClassifierTest() {
    directory_.Write("config.json", "{}");
    EXPECT_THAT(WriteSafetensors(directory_.File("model.safetensors"), {}), IsOk());
  }

  std::unique_ptr<Classifier> Make(int64_t multiply_adds) const {
    const auto opened = OpenModelDirectory(directory_.path());
    EXPECT_THAT(opened, IsOk());
    ClassifierInfo info;
    info.input = ClassifierInput::kImage;
    info.classes = 2;
    info.width = 2;
    const auto weights =
        LoadServedClassifier(info, /*head_width=*/0, *opened, {.threads = GetParam()},
                             [&](const TensorSource&) { return std::make_shared<FakeNetwork>(multiply_adds); });
    EXPECT_THAT(weights, IsOk());
    return weights->NewReplica({}).value();
  }

  // Images of 2 x 1 pixels, of which the first is one of these.
  static absl::StatusOr<ClassifierResult> Compute(Classifier& classifier, const std::vector<float>& values,
                                                  ClassifierOutput output = ClassifierOutput::kLogits) {
    std::vector<ClassifierItem> images;
    for (const float value : values) images.push_back(ImageItem{.height = 2, .width = 1, .values = {value, 0.5F}});
    std::vector<const ClassifierItem*> items;
    for (const ClassifierItem& image : images) items.push_back(&image);
    return classifier.Run(items, output);
  }

 private:
  const TemporaryDirectory directory_;
};

constexpr int64_t kLarge = 1'000'000'000, kSmall = 1;

TEST_P(ImageClassifierTest, LargeImagesRunByThemselvesAndSmallOnesTogether) {
  const auto large = Make(kLarge);
  const auto apart = Compute(*large, {1, 2, 3});
  ASSERT_THAT(apart, IsOk());
  EXPECT_THAT(apart->rows, ::testing::ElementsAre(3, 2, 5, 2, 7, 2));
  EXPECT_EQ(apart->counts.multiply_adds, 3 * 2 * kLarge);

  const auto small = Make(kSmall);
  const auto together = Compute(*small, {1, 2, 3});
  ASSERT_THAT(together, IsOk());
  EXPECT_THAT(together->rows, ::testing::ElementsAre(3, 6, 5, 6, 7, 6));
  EXPECT_EQ(together->counts.multiply_adds, 3 * 2 * kSmall);
}

TEST_P(ImageClassifierTest, AnEmbeddingIsWhatTheHeadReadsAndCostsNoHead) {
  const auto classifier = Make(kLarge);
  const auto features = Compute(*classifier, {1, 2, 3}, ClassifierOutput::kFeatures);
  ASSERT_THAT(features, IsOk());
  EXPECT_THAT(features->rows, ::testing::ElementsAre(1.5, 1, 2.5, 1, 3.5, 1));
  EXPECT_EQ(features->counts.multiply_adds, 3 * (2 * kLarge - /*the head*/ 4));

  const auto both = Compute(*classifier, {1, 2}, ClassifierOutput::kLogitsAndFeatures);
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(both->rows, ::testing::ElementsAre(3, 2, 1.5, 1, 5, 2, 2.5, 1));
  EXPECT_EQ(both->counts.multiply_adds, 2 * 2 * kLarge);

  const auto mean = Compute(*classifier, {1, 2, 3}, ClassifierOutput::kMeanOfTokens);
  EXPECT_EQ(mean.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(mean.status().message()), ::testing::HasSubstr("the model takes images"));
}

TEST_P(ImageClassifierTest, OneImageThatFailsFailsItsBatchAndNoOther) {
  const auto classifier = Make(kLarge);
  for (int failing = 0; failing < 5; ++failing) {
    std::vector<float> values(5, 1);
    values[failing] = -1;
    const auto failed = Compute(*classifier, values);
    EXPECT_EQ(failed.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(failed.status().message()),
                ::testing::AllOf(::testing::HasSubstr("5 items"), ::testing::HasSubstr("a negative pixel")));

    values[failing] = 7;
    const auto next = Compute(*classifier, values);
    ASSERT_THAT(next, IsOk());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(next->rows[2 * i], i == failing ? 15 : 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ImageClassifierTest, ::testing::Values(1, 2, 3));

}  // namespace longshort::models::image_classifier_test
