#include "server/requests/class_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace longshort {
namespace {

ClassifierInfo Info(int64_t classes, const std::string& label) {
  ClassifierInfo info;
  info.classes = classes;
  if (!label.empty()) info.labels.assign(classes, label);
  return info;
}

TEST(ClassAnswer, NamesTheLikeliestClassesWithTheirSoftmaxAndEqualOnesByIndex) {
  ClassifierInfo info = Info(4, "");
  info.labels = {"a", "b", "c", "d"};
  const ItemScores scores{.logits = {0, std::log(3.0F), 0, std::log(5.0F)}, .timings = {}};
  const v1::Classification message = ToMessage(scores, *ReadClassAnswer(3, false, info), info);
  ASSERT_EQ(message.classes_size(), 3);
  EXPECT_EQ(message.classes(0).label(), "d");
  EXPECT_NEAR(message.classes(0).probability(), 0.5, 1e-6);  // 5 of 1 + 3 + 1 + 5
  EXPECT_NEAR(message.classes(1).probability(), 0.3, 1e-6);
  EXPECT_EQ(message.classes(2).index(), 0);
  EXPECT_EQ(message.logits_size(), 0);
}

TEST(ClassAnswer, ZeroNamesFiveAndMoreThanThereAreNamesAll) {
  EXPECT_EQ(ReadClassAnswer(0, false, Info(1000, ""))->top_k, 5);
  EXPECT_EQ(ReadClassAnswer(0, false, Info(2, ""))->top_k, 2);
  EXPECT_EQ(ReadClassAnswer(5000, false, Info(1000, ""))->top_k, 1000);
  EXPECT_EQ(ReadClassAnswer(-1, false, Info(2, "")).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ClassAnswer, IsNeverLongerThanItsBound) {
  const ClassifierInfo info = Info(70000, std::string(200, 'x'));
  const ClassAnswer answer{.top_k = info.classes, .all_logits = true};
  ItemScores scores{.logits = std::vector<float>(info.classes, -0.5F), .timings = {}};
  scores.timings.run = absl::Seconds(1);
  EXPECT_LE(static_cast<int64_t>(ToMessage(scores, answer, info).ByteSizeLong()), MostBytes(answer, info));
}

// 64 images of 21,841 classes: all logits take 5.6 MB.
TEST(ClassAnswer, TooMuchForOneMessageIsRefused) {
  const ClassifierInfo info = Info(21841, "");
  EXPECT_TRUE(CheckAnswerFits({.top_k = 5, .all_logits = false}, info, 64, RequestLimits()).ok());
  EXPECT_TRUE(CheckAnswerFits({.top_k = 5, .all_logits = true}, info, 32, RequestLimits()).ok());
  EXPECT_EQ(CheckAnswerFits({.top_k = 5, .all_logits = true}, info, 64, RequestLimits()).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace longshort
