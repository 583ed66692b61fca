#include "core/engine/batch_former.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort {
namespace {

using ::testing::ElementsAre;

class BatchFormerTest : public testing::Test {
 protected:
  // Adds an item whose first logit is `name`.
  void Add(BatchFormer& former, ClassifierItem item, RequestContext context = {}) {
    ClassificationRequest request;
    request.context = std::move(context);
    request.item = std::move(item);
    former.Add(std::make_unique<ClassificationJob>(std::move(request),
                                                   std::make_shared<RecordingClassificationListener>(), clock_.Now()));
  }

  static std::vector<float> Names(const ClassificationJobs& jobs) {
    std::vector<float> names;
    for (const auto& job : jobs) names.push_back(FakeClassifier::LogitsOf(job->item())[0]);
    return names;
  }

  FakeClock clock_;
};

TEST_F(BatchFormerTest, TakesWhatIsThereInOrderUpToTheSizeOfABatch) {
  BatchFormer former({.max_batch_size = 3});
  for (int32_t id = 1; id <= 5; ++id) Add(former, Document(id));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(1, 2, 3));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(4, 5));
  EXPECT_TRUE(former.TakeBatch().empty());
}

// Sizes   8x8  4x4  8x8  8x4  4x4        8x4 is another size than 4x8
// Batches  1         1
//               2              2
//                         3
TEST_F(BatchFormerTest, ImagesOfOneSizeRunTogetherAndTheOldestGoesFirst) {
  BatchFormer former({.max_batch_size = 10});
  Add(former, ImageOf(8, 8, 1));
  Add(former, ImageOf(4, 4, 2));
  Add(former, ImageOf(8, 8, 3));
  Add(former, ImageOf(8, 4, 4));
  Add(former, ImageOf(4, 4, 5));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(1, 3));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(2, 5));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(4));
}

TEST_F(BatchFormerTest, DocumentsOfAnyLengthsRunTogetherUpToTheTokensOfABatch) {
  BatchFormer former({.max_batch_size = 10, .max_batch_tokens = 100});
  Add(former, Document(1, 60));
  Add(former, Document(1, 40));
  Add(former, Document(1, 1));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(60, 40));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(1));
}

TEST_F(BatchFormerTest, ADocumentLongerThanABatchRunsAlone) {
  BatchFormer former({.max_batch_size = 10, .max_batch_tokens = 100});
  Add(former, Document(1, 500));
  Add(former, Document(1, 2));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(500));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(2));
}

TEST_F(BatchFormerTest, WhatNobodyWaitsForLeavesAndTheOthersKeepTheirOrder) {
  BatchFormer former({});
  RequestContext cancelled, late;
  late.deadline = clock_.Now() + absl::Seconds(2);
  Add(former, Document(1));
  Add(former, Document(2), cancelled);
  Add(former, Document(3), late);
  Add(former, Document(4));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(former.TakeAbandoned(clock_.Now()).empty());
  cancelled.cancelled->store(true);
  EXPECT_THAT(Names(former.TakeAbandoned(clock_.Now())), ElementsAre(2));
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Names(former.TakeAbandoned(clock_.Now())), ElementsAre(3));
  EXPECT_THAT(Names(former.TakeBatch()), ElementsAre(1, 4));
}

}  // namespace
}  // namespace longshort
