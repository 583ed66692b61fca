#include "core/classification/batch_former.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core::batch_former_test {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class BatchFormerTest : public testing::Test {
 protected:
  // Adds an item whose first logit is `name`.
  void Add(BatchFormer& former, models::ClassifierItem item, RequestContext context = {},
           models::ClassifierOutput output = models::ClassifierOutput::kLogits) {
    ClassificationRequest request;
    request.context = std::move(context);
    request.item = std::move(item);
    request.output = output;
    auto job = std::make_unique<ClassificationJob>(std::move(request),
                                                   std::make_shared<RecordingClassificationListener>(), clock_.Now());
    job->attributes = {
        .priority = job->context().priority, .client = job->context().client, .due = job->context().deadline};
    former.Add(std::move(job));
  }

  // The next batch, which runs for so long.
  ClassificationJobs Take(BatchFormer& former, absl::Duration run = absl::ZeroDuration()) {
    BatchFormer::Batch batch = former.TakeBatch(clock_.Now());
    EXPECT_TRUE(batch.too_late.empty());
    clock_.Advance(run);
    if (!batch.jobs.empty()) former.Complete(0, batch.jobs, run, /*failed=*/false, clock_.Now());
    return std::move(batch.jobs);
  }

  static RequestContext From(const std::string& client) {
    RequestContext context;
    context.client = client;
    return context;
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
  EXPECT_THAT(Names(Take(former)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Names(Take(former)), ElementsAre(4, 5));
  EXPECT_TRUE(Take(former).empty());
}

TEST_F(BatchFormerTest, ABatchIsFullByItemsOrTokensOfClientsThatMayRun) {
  BatchFormer former({.max_batch_size = 4, .max_batch_tokens = 100, .order = {.max_running_per_client = 2}});
  Add(former, Document(1, 40), From("a"));
  Add(former, Document(2, 40), From("b"));
  EXPECT_FALSE(former.HasFullBatch());
  Add(former, Document(3, 20), From("b"));
  EXPECT_TRUE(former.HasFullBatch());
  EXPECT_THAT(former.TakeBatch(clock_.Now()).jobs, testing::SizeIs(3));
  for (int32_t id = 1; id <= 4; ++id) Add(former, Document(id), From("b"));
  EXPECT_FALSE(former.HasFullBatch()) << "client b runs two";
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
  EXPECT_THAT(Names(Take(former)), ElementsAre(1, 3));
  EXPECT_THAT(Names(Take(former)), ElementsAre(2, 5));
  EXPECT_THAT(Names(Take(former)), ElementsAre(4));
}

TEST_F(BatchFormerTest, ItemsOfOneOutputRunTogetherAndTheOldestGoesFirst) {
  constexpr auto kFeatures = models::ClassifierOutput::kFeatures, kMean = models::ClassifierOutput::kMeanOfTokens;
  BatchFormer former({});
  Add(former, Document(1));
  Add(former, Document(2), {}, kFeatures);
  Add(former, Document(3), {}, kMean);
  Add(former, Document(4));
  Add(former, Document(5), {}, kFeatures);
  EXPECT_THAT(Names(Take(former)), ElementsAre(1, 4));
  EXPECT_THAT(Names(Take(former)), ElementsAre(2, 5));
  EXPECT_THAT(Names(Take(former)), ElementsAre(3));

  Add(former, ImageOf(2, 2, 1), {}, kFeatures);
  Add(former, ImageOf(2, 2, 2));
  Add(former, ImageOf(2, 3, 3), {}, kFeatures);
  Add(former, ImageOf(2, 2, 4), {}, kFeatures);
  EXPECT_THAT(Names(Take(former)), ElementsAre(1, 4));
  EXPECT_THAT(Names(Take(former)), ElementsAre(2));
  EXPECT_THAT(Names(Take(former)), ElementsAre(3));
}

TEST_F(BatchFormerTest, DocumentsOfAnyLengthsRunTogetherUpToTheTokensOfABatch) {
  BatchFormer former({.max_batch_size = 10, .max_batch_tokens = 100});
  Add(former, Document(1, 60));
  Add(former, Document(1, 40));
  Add(former, Document(1, 1));
  EXPECT_THAT(Names(Take(former)), ElementsAre(60, 40));
  EXPECT_THAT(Names(Take(former)), ElementsAre(1));
}

TEST_F(BatchFormerTest, ADocumentLongerThanABatchRunsAlone) {
  BatchFormer former({.max_batch_size = 10, .max_batch_tokens = 100});
  Add(former, Document(1, 500));
  Add(former, Document(1, 2));
  EXPECT_THAT(Names(Take(former)), ElementsAre(500));
  EXPECT_THAT(Names(Take(former)), ElementsAre(2));
}

// A batch takes 1 s, far more than a share. Were rounds to begin for those that join one, while the other size's
// priority waits with its share, each batch would cost its priority next to nothing.
TEST_F(BatchFormerTest, PrioritiesOfDifferentSizesShareTheWorkerByTheirWeights) {
  BatchFormer former({.max_batch_size = 10});
  RequestContext normal, high;
  high.priority = Priority::kHigh;
  std::map<Priority, int> batches;
  for (int i = 0; i < 1000; ++i) {
    while (former.size() < 20) {
      Add(former, ImageOf(4, 4, 1), normal);
      Add(former, ImageOf(8, 8, 2), high);
    }
    const ClassificationJobs batch = Take(former, absl::Seconds(1));
    ASSERT_EQ(batch.size(), 10u);
    ++batches[batch[0]->context().priority];
    for (const auto& job : batch) Add(former, job->item(), job->context());
  }
  EXPECT_NEAR(batches[Priority::kNormal], 1000 * 4 / (4 + 16), 5);
}

TEST_F(BatchFormerTest, AbandonedItemsLeaveAndTheOthersKeepTheirOrder) {
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
  EXPECT_THAT(Names(Take(former)), ElementsAre(1, 4));
}

TEST_F(BatchFormerTest, TheFirstInOrderDecidesTheBatchAndOthersJoinInOrder) {
  BatchFormer former({.max_batch_size = 3});
  RequestContext low, high, soon;
  low.priority = Priority::kLow;
  high.priority = Priority::kHigh;
  soon.deadline = clock_.Now() + absl::Hours(1);
  Add(former, ImageOf(8, 8, 1), low);
  Add(former, ImageOf(8, 8, 2));
  Add(former, ImageOf(4, 4, 3), soon);
  Add(former, ImageOf(8, 8, 4), soon);
  Add(former, ImageOf(8, 8, 5), high);
  EXPECT_THAT(Names(Take(former)), ElementsAre(5, 4, 2));
  EXPECT_THAT(Names(Take(former)), ElementsAre(3));
  EXPECT_THAT(Names(Take(former)), ElementsAre(1));
}

// Runs take 1 ms a token, so two documents of 100 make their deadline at once, and one behind another document.
TEST_F(BatchFormerTest, ABatchBehindARunningOneGrowsOnlyAsLongAsItMakesItsDeadlines) {
  BatchFormer former({});
  for (const int64_t tokens : {100, 200, 300}) {
    Add(former, Document(1, tokens));
    Take(former, absl::Milliseconds(tokens));
  }
  const auto take = [&](absl::Duration busy) {
    RequestContext urgent;
    urgent.deadline = clock_.Now() + absl::Milliseconds(250);
    for (int32_t id = 1; id <= 3; ++id) Add(former, Document(id, 100), urgent);
    const BatchFormer::Batch batch = former.TakeBatch(clock_.Now(), {.busy_until = clock_.Now() + busy});
    const absl::Duration run = batch.jobs.size() * absl::Milliseconds(100);
    EXPECT_NEAR(absl::ToDoubleMilliseconds(batch.predicted_end - clock_.Now()), absl::ToDoubleMilliseconds(busy + run),
                5);
    former.Complete(0, batch.jobs, run, /*failed=*/false, clock_.Now());
    former.TakeAll();
    return batch.jobs.size();
  };
  EXPECT_EQ(take(absl::ZeroDuration()), 2u);
  EXPECT_EQ(take(absl::Milliseconds(100)), 1u);
}

// Runs take 1 ms a token. The most urgent has 250 ms; alone it makes it, with two more it does not.
TEST_F(BatchFormerTest, ABatchGrowsOnlyAsLongAsItsMostUrgentItemMakesIt) {
  BatchFormer former({});
  for (const int64_t tokens : {100, 200, 300}) {
    Add(former, Document(1, tokens));
    Take(former, absl::Milliseconds(tokens));
  }
  RequestContext urgent;
  urgent.deadline = clock_.Now() + absl::Milliseconds(250);
  Add(former, Document(1, 100), urgent);
  for (int i = 1; i <= 4; ++i) Add(former, Document(1, 100 + i));
  EXPECT_THAT(Names(Take(former)), ElementsAre(100, 101));
  EXPECT_THAT(Names(Take(former)), ElementsAre(102, 103, 104));
}

TEST_F(BatchFormerTest, WhatCannotMakeItIsLeftOutSayingWhyUnlessThereIsNothingElse) {
  BatchFormer former({});
  Add(former, Document(1, 100));
  Take(former, absl::Milliseconds(100));
  RequestContext late;
  late.deadline = clock_.Now() + absl::Milliseconds(50);
  Add(former, Document(1, 100), late);
  Add(former, Document(1, 110), late);
  Add(former, Document(1, 1));
  const BatchFormer::Batch batch = former.TakeBatch(clock_.Now());
  EXPECT_THAT(Names(batch.jobs), ElementsAre(1));
  ASSERT_EQ(batch.too_late.size(), 2u);
  EXPECT_EQ(batch.too_late[0].why,
            absl::DeadlineExceededError("the request needs at least 100ms, but its deadline is in 50ms"));
  former.Complete(0, batch.jobs, absl::Milliseconds(1), /*failed=*/false, clock_.Now());
  Add(former, Document(1, 100), late);
  Add(former, Document(1, 110), late);
  const BatchFormer::Batch tried = former.TakeBatch(clock_.Now());
  EXPECT_THAT(Names(tried.jobs), ElementsAre(100));
  EXPECT_EQ(tried.too_late.size(), 1u);
  EXPECT_EQ(former.load().running, 1);
}

TEST_F(BatchFormerTest, WhatIsLeftOutDoesNotHoldItsClientBack) {
  BatchFormer former({.order = {.max_running_per_client = 1}});
  Add(former, Document(1, 100));
  Take(former, absl::Milliseconds(100));
  RequestContext late = From("a");
  late.deadline = clock_.Now() + absl::Milliseconds(50);
  for (const bool in_company : {false, true}) {
    Add(former, Document(1, 100), late);
    if (in_company) Add(former, Document(3, 1), From("b"));
    Add(former, Document(2, 1), From("a"));
    const BatchFormer::Batch batch = former.TakeBatch(clock_.Now());
    EXPECT_EQ(batch.too_late.size(), 1u);
    EXPECT_THAT(Names(batch.jobs), ElementsAreArray(in_company ? std::vector<float>{3, 2} : std::vector<float>{2}));
    former.Complete(0, batch.jobs, absl::ZeroDuration(), /*failed=*/false, clock_.Now());
  }
  EXPECT_EQ(former.size(), 0);
}

TEST_F(BatchFormerTest, DoesNotWaitUnlessConfigured) {
  BatchFormer former({});
  EXPECT_EQ(former.DueAt(), absl::InfiniteFuture());
  Add(former, Document(1));
  EXPECT_EQ(former.DueAt(), absl::InfinitePast());
}

TEST_F(BatchFormerTest, WaitsForOthersAsLongAsItMayOrUntilItIsFullOrUrgent) {
  BatchFormer former({.max_batch_size = 3, .max_queue_delay = absl::Milliseconds(20)});
  const absl::Time begin = clock_.Now();
  Add(former, Document(1));
  clock_.Advance(absl::Milliseconds(5));
  Add(former, Document(2));
  EXPECT_EQ(former.DueAt(), begin + absl::Milliseconds(20));
  RequestContext urgent;
  urgent.deadline = begin + absl::Milliseconds(12);
  Add(former, Document(3), urgent);
  EXPECT_EQ(former.DueAt(), absl::InfinitePast());  // three are a batch
  EXPECT_THAT(Names(Take(former)), ElementsAre(3, 1, 2));
  Add(former, Document(4), urgent);
  EXPECT_EQ(former.DueAt(), clock_.Now() + (urgent.deadline - clock_.Now()) / 2);
}

TEST_F(BatchFormerTest, NothingIsDueWhileAllThatWaitIsOfClientsWithAsMuchRunningAsTheyMay) {
  BatchFormer former({.order = {.max_running_per_client = 1}});
  Add(former, Document(1), From("a"));
  Add(former, Document(2), From("a"));
  const BatchFormer::Batch running = former.TakeBatch(clock_.Now());
  EXPECT_THAT(Names(running.jobs), ElementsAre(1)) << "of one client only one";
  EXPECT_EQ(former.DueAt(), absl::InfiniteFuture());
  Add(former, Document(3), From("b"));
  EXPECT_EQ(former.DueAt(), absl::InfinitePast());
  EXPECT_THAT(Names(Take(former)), ElementsAre(3));
  former.Complete(0, running.jobs, absl::Seconds(1), /*failed=*/false, clock_.Now());
  EXPECT_EQ(former.DueAt(), absl::InfinitePast());
  EXPECT_THAT(Names(Take(former)), ElementsAre(2));
}

TEST_F(BatchFormerTest, WhatMayNotRunNowMakesNothingDue) {
  BatchFormer former(
      {.max_batch_size = 3, .max_queue_delay = absl::Milliseconds(20), .order = {.max_running_per_client = 1}});
  for (int32_t id = 1; id <= 4; ++id) Add(former, Document(id), From("a"));
  const BatchFormer::Batch running = former.TakeBatch(clock_.Now());
  EXPECT_THAT(Names(running.jobs), ElementsAre(1)) << "of one client only one";
  clock_.Advance(absl::Seconds(1));
  Add(former, Document(5), From("b"));
  EXPECT_EQ(former.DueAt(), clock_.Now() + absl::Milliseconds(20));
  former.Complete(0, running.jobs, absl::Seconds(1), /*failed=*/false, clock_.Now());
  EXPECT_EQ(former.DueAt(), absl::InfinitePast());
}

TEST_F(BatchFormerTest, ALastTryMakesNothingDueForAWorkerOnProbation) {
  BatchFormer former({.max_batch_size = 2, .max_queue_delay = absl::Milliseconds(20)});
  for (int32_t id = 1; id <= 2; ++id) Add(former, Document(id));
  ClassificationJobs jobs = Take(former);
  for (auto& job : jobs) {
    while (!job->failures.on_last_try()) job->failures.OnFailure(/*alone=*/true);
    former.Add(std::move(job));
  }
  clock_.Advance(absl::Seconds(1));
  Add(former, Document(3));
  EXPECT_EQ(former.DueAt(/*on_probation=*/true), clock_.Now() + absl::Milliseconds(20));
  EXPECT_EQ(former.DueAt(/*on_probation=*/false), absl::InfinitePast());
}

// Otherwise a client whose items break the model would always have the smallest charge, and be first.
TEST_F(BatchFormerTest, WhatABatchThatFailedTookIsChargedToItsClients) {
  BatchFormer former({.max_batch_size = 1});
  for (int32_t id = 1; id <= 2; ++id) Add(former, Document(id), From("a"));
  for (int32_t id = 11; id <= 12; ++id) Add(former, Document(id), From("b"));
  const BatchFormer::Batch failed = former.TakeBatch(clock_.Now());
  EXPECT_THAT(Names(failed.jobs), ElementsAre(1));
  former.Complete(0, failed.jobs, absl::Seconds(3), /*failed=*/true, clock_.Now());
  EXPECT_THAT(Names(Take(former, absl::Seconds(1))), ElementsAre(11));
  EXPECT_THAT(Names(Take(former, absl::Seconds(1))), ElementsAre(12));
  EXPECT_THAT(Names(Take(former, absl::Seconds(1))), ElementsAre(2));
}

// After the first batch it is the turn of "b", then of "a", whose first item is what failed: it is not left behind for
// what came later.
TEST_F(BatchFormerTest, NothingOvertakesAnItemThatIsToRunAlone) {
  BatchFormer former({.max_batch_size = 3});
  Add(former, Document(1), From("b"));
  Add(former, Document(2), From("a"));
  BatchFormer::Batch failed = former.TakeBatch(clock_.Now());
  former.Complete(0, failed.jobs, absl::Seconds(1), /*failed=*/true, clock_.Now());
  failed.jobs[1]->failures.OnFailure(/*alone=*/false);
  former.Add(std::move(failed.jobs[1]));
  Add(former, Document(3), From("a"));
  Add(former, Document(4), From("b"));
  EXPECT_THAT(Names(Take(former)), ElementsAre(4));
  EXPECT_THAT(Names(Take(former)), ElementsAre(2));
  EXPECT_THAT(Names(Take(former)), ElementsAre(3));
}

// "a" leads every batch and "b" comes second, with what suits, as long as both have some.
TEST_F(BatchFormerTest, ImagesOfAnotherSizeAreNotLeftBehindForEverAndRunTogether) {
  BatchFormer former({.max_batch_size = 2});
  const auto usual = [&] {
    Add(former, ImageOf(4, 4, 1), From("a"));
    Add(former, ImageOf(4, 4, 2), From("b"));
  };
  for (int i = 0; i < 3; ++i) usual();
  Add(former, ImageOf(8, 8, 3), From("b"));
  Add(former, ImageOf(8, 8, 4), From("b"));
  std::vector<std::vector<float>> batches;
  do {
    usual();
    batches.push_back(Names(Take(former, absl::Seconds(1))));
  } while (batches.back()[0] != 3 && batches.size() < 100);
  EXPECT_EQ(batches[0], std::vector<float>({1, 2}));
  EXPECT_EQ(batches.back(), std::vector<float>({3, 4})) << "they still wait, or ran one by one";
}

}  // namespace longshort::core::batch_former_test
