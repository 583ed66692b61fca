#include "server/handlers/item_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/server/fakes/plain_names.h"

namespace longshort::server::item_answer_test {

models::ClassifierInfo Info(int64_t classes, const std::string& label) {
  models::ClassifierInfo info;
  info.classes = classes;
  if (!label.empty()) info.labels.assign(classes, label);
  return info;
}

TEST(ClassAnswer, HasTheMostLikelyClassesWithTheirSoftmaxAndOrdersTiesByIndex) {
  models::ClassifierInfo info = Info(4, "");
  info.labels = {"a", "b", "c", "d"};
  const core::ItemResult scores{.row = {0, std::log(3.0F), 0, std::log(5.0F)}, .timings = {}};
  const auto answer = ReadClassAnswer({.top_k = 3}, info, kPlainNames);
  const Classification classification = AnswerOf(scores, *answer, info);
  ASSERT_EQ(classification.classes.size(), 3U);
  EXPECT_EQ(classification.classes[0].label, "d");
  EXPECT_NEAR(classification.classes[0].probability, 0.5, 1e-6);  // 5 of 1 + 3 + 1 + 5
  EXPECT_NEAR(classification.classes[1].probability, 0.3, 1e-6);
  EXPECT_EQ(classification.classes[2].index, 0);
  EXPECT_TRUE(classification.logits.empty());
}

TEST(ClassAnswer, TheProblemTypeSaysWhatTheLogitsMean) {
  models::ClassifierInfo info = Info(3, "");
  const core::ItemResult scores{.row = {-std::log(3.0F), 40, std::log(3.0F)}, .timings = {}};
  const auto answer = ReadClassAnswer({.top_k = 2, .all_probabilities = true}, info, kPlainNames);
  const auto classify = [&](models::ProblemType type) {
    info.problem_type = type;
    return AnswerOf(scores, *answer, info);
  };
  const Classification labels = classify(models::ProblemType::kMultiLabel);
  ASSERT_EQ(labels.classes.size(), 2U);
  EXPECT_EQ(labels.classes[0].index, 1);
  EXPECT_FLOAT_EQ(labels.classes[0].probability, 1);
  EXPECT_EQ(labels.classes[1].index, 2);
  EXPECT_FLOAT_EQ(labels.classes[1].probability, 0.75);
  EXPECT_FLOAT_EQ(labels.probabilities[0], 0.25);

  const Classification numbers = classify(models::ProblemType::kRegression);
  EXPECT_EQ(numbers.probabilities, scores.row);
  EXPECT_EQ(numbers.classes[0].probability, 40);
  EXPECT_EQ(numbers.classes[1].index, 2);
}

TEST(ClassAnswer, AModelWithoutClassesHasNone) {
  EXPECT_EQ(ReadClassAnswer({}, Info(0, ""), kPlainNames).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ClassAnswer, TopKIsFiveByDefaultAndAtMostTheNumberOfClasses) {
  EXPECT_EQ(ReadClassAnswer({}, Info(1000, ""), kPlainNames)->top_k, 5);
  EXPECT_EQ(ReadClassAnswer({}, Info(2, ""), kPlainNames)->top_k, 2);
  EXPECT_EQ(ReadClassAnswer({.top_k = 5000}, Info(1000, ""), kPlainNames)->top_k, 1000);
  EXPECT_EQ(ReadClassAnswer({.top_k = -1}, Info(2, ""), kPlainNames).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// 64 images of 21,841 classes: all logits take 5.6 MB.
TEST(ClassAnswer, TooMuchForOneMessageIsRefused) {
  const models::ClassifierInfo info = Info(21841, "");
  EXPECT_TRUE(CheckAnswerFits({.top_k = 5, .all_logits = false}, info, 64, kGrpcAnswerBytes, kPlainNames).ok());
  EXPECT_TRUE(CheckAnswerFits({.top_k = 5, .all_logits = true}, info, 32, kGrpcAnswerBytes, kPlainNames).ok());
  const absl::Status refused =
      CheckAnswerFits({.top_k = 5, .all_logits = true}, info, 64, kGrpcAnswerBytes, kPlainNames);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("it must be in [0, 3145728]: send at most 35 items in one call"));
}

// 2,048 texts with all of 54 classes take 3.8 MB.
TEST(ClassAnswer, HttpHasLargerAnswers) {
  const models::ClassifierInfo info = Info(54, "German");
  EXPECT_FALSE(CheckAnswerFits({.top_k = 54}, info, 2048, kGrpcAnswerBytes, kPlainNames).ok());
  EXPECT_TRUE(CheckAnswerFits({.top_k = 54}, info, 2048, kHttpAnswerBytes, kPlainNames).ok());
}

}  // namespace longshort::server::item_answer_test
