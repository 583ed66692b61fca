#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/model_control/load_models.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::server::warm_up_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WarmUp, ALanguageModelReadsAPromptAndGoesOnByOneToken) {
  auto model = std::make_unique<core::FakeLanguageModel>();
  std::vector<size_t> tokens;
  int rests = 0;
  model->on_step = [&tokens](absl::Span<const models::Slice> slices) {
    EXPECT_EQ(slices.size(), 1);
    EXPECT_EQ(slices[0].logit_rows, 1);
    tokens.push_back(slices[0].tokens.size());
    return absl::OkStatus();
  };
  model->on_rest = [&rests] { ++rests; };
  const models::LoadedModel loaded =
      models::LoadedLanguageModel{.weights = core::WeightsOf(std::move(model)), .tokenizer = nullptr};
  ASSERT_TRUE(WarmUp(loaded, {}).ok());
  ASSERT_GE(tokens.size(), 2);
  EXPECT_GT(tokens.front(), 1) << "a prompt, for the products of many rows";
  EXPECT_EQ(tokens.back(), 1) << "a step of decoding";
  EXPECT_EQ(rests, 1) << "its threads would be in the way of the workers'";
}

TEST(WarmUp, AClassifierRunsAnItemAloneAndABatch) {
  auto classifier = std::make_unique<core::FakeClassifier>();
  std::vector<size_t> items;
  classifier->on_batch = [&items](absl::Span<const models::ClassifierItem* const> batch) {
    items.push_back(batch.size());
    return absl::OkStatus();
  };
  const models::LoadedModel loaded = models::LoadedClassifier{
      .weights = core::WeightsOf(std::move(classifier)), .tokenizer = nullptr, .preprocessor = nullptr};
  ASSERT_TRUE(WarmUp(loaded, {}).ok());
  EXPECT_THAT(items, ElementsAre(1, 2));
}

TEST(WarmUp, AModelThatFailsIsNoneToServe) {
  auto failing = std::make_unique<core::FakeLanguageModel>();
  failing->on_step = [](absl::Span<const models::Slice>) { return absl::InternalError("no such product"); };
  EXPECT_EQ(
      WarmUp(models::LoadedLanguageModel{.weights = core::WeightsOf(std::move(failing)), .tokenizer = nullptr}, {}),
      absl::InternalError("no such product"));

  auto throwing = std::make_unique<core::FakeClassifier>();
  throwing->on_batch = [](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
    throw std::runtime_error("no such product");
  };
  const absl::Status thrown = WarmUp(
      models::LoadedClassifier{
          .weights = core::WeightsOf(std::move(throwing)), .tokenizer = nullptr, .preprocessor = nullptr},
      {});
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(thrown.message()), HasSubstr("first step failed: no such product"));
}

}  // namespace longshort::server::warm_up_test
