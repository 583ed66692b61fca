// A day of a classifier's traffic: 86,400 simulated seconds of clients who come and go, rushes, workers that stall,
// fail and are rebuilt, and engines that are replaced. Every answer is compared with the model's own, every end and
// every refusal must have its reason, no worker may sleep while there is work for it, and after every hour nothing may
// be left over.

#include <algorithm>
#include <iostream>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/schedule/work_order.h"
#include "gtest/gtest.h"
#include "tests/core/classification/classifier_day_machine.h"
#include "tests/core/classification/classifier_day_traffic.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/timeline.h"

namespace longshort::core::classifier_day_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSimulatedHours = 12;  // sanitizers make it slow
#else
constexpr int kSimulatedHours = ItemCounts::kHours;
#endif

constexpr absl::Duration kMaxQueued = absl::Seconds(60);
constexpr absl::Duration kMaxQueuedPerClient = absl::Seconds(8);
constexpr absl::Duration kStall = absl::Seconds(40);
constexpr int64_t kMaxTokens = 300;
const absl::Duration kLongestBatch = kFixedRun + kRunOfUnit * kMaxTokens;
constexpr int64_t kAllWeights = 1 + 4 + 16;

DynamicBatchingEngine::Options EngineOptions() {
  DynamicBatchingEngine::Options options;
  options.workers = models::CpuWorkers(3);
  options.items.batches.max_batch_size = 4;
  options.items.batches.max_batch_tokens = kMaxTokens;
  options.items.limits.max_queued = 100;
  options.items.limits.max_queued_cost = kMaxQueued;
  options.items.limits.max_queued_per_client = 40;
  options.items.limits.max_queued_cost_per_client = kMaxQueuedPerClient;
  return options;
}

using Traffic = ClassifierDayTraffic;

class ClassifierDay : public testing::TestWithParam<DayItems> {
 protected:
  void Run(int hours) {
    const absl::Time begin = clock_.Now();
    traffic_.Begin();
    for (int hour = 0; hour < hours; ++hour) {
      const absl::Time full_hour = begin + absl::Hours(hour);
      timeline_.At(full_hour + absl::Minutes(17), [this] { machine_.ThrowNext(); });
      timeline_.At(full_hour + kFirstStall, [this] { machine_.StallNext(kStall); });
      if (hour % 5 == 1) {  // the next worker that fails has no model for a while
        timeline_.At(full_hour + absl::Minutes(16),
                     [this] { machine_.RefuseReplicasUntil(clock_.Now() + absl::Seconds(90)); });
      }
      if (hour == 3 || hour == 7 || hour == 10) {  // at night, by day, in a rush; the last one then lives long
        timeline_.At(full_hour + absl::Minutes(15), [this] {
          machine_.Replace();
          traffic_.HearEnds();
        });
      }
      RunUntil(full_hour + absl::Minutes(58));
      traffic_.SetCalm(true);
      RunUntil(full_hour + absl::Hours(1));
      RunUntilIdle();
      EXPECT_EQ(machine_.state().waiting_items, 0);
      EXPECT_EQ(machine_.state().waiting_bytes, 0);
      ASSERT_EQ(traffic_.outstanding(), 0);
      traffic_.SetCalm(false);
      if (hour == 1) heap_in_the_morning_ = LiveHeapBytes();
      if (HasFatalFailure()) return;
    }
    heap_in_the_evening_ = LiveHeapBytes();
  }

  FakeClock clock_;
  Timeline timeline_;
  ClassifierDayMachine machine_{clock_, EngineOptions()};
  ClassifierDayTraffic traffic_{GetParam(), 20240229, timeline_, clock_, machine_, EngineOptions()};
  int64_t heap_in_the_morning_ = 0;
  int64_t heap_in_the_evening_ = 0;

 private:
  void RunRound(absl::Time end) {
    timeline_.RunDue(clock_.Now());
    const absl::Time next = std::min({timeline_.next(), machine_.next(), machine_.next_replica(), end});
    if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
    if (machine_.next_replica() <= clock_.Now()) traffic_.Probe();
    machine_.EndDue();
    traffic_.HearEnds();
  }

  void RunUntil(absl::Time end) {
    while (clock_.Now() < end && !HasFatalFailure()) RunRound(end);
  }

  // Until no item is outstanding.
  void RunUntilIdle() {
    const absl::Time latest = clock_.Now() + absl::Minutes(10);
    while (traffic_.outstanding() > 0 && !HasFatalFailure()) {
      ASSERT_LT(clock_.Now(), latest) << "the line does not get shorter";
      RunRound(latest);
    }
  }
};

void PrintTotals(const ItemCounts& counts, const ClassifierDayMachine::Counts& machine) {
  std::string ends, failures, waits, shares;
  for (const auto& [code, count] : counts.ends) absl::StrAppend(&ends, " ", absl::StatusCodeToString(code), " ", count);
  for (const auto& [times, count] : counts.failures) absl::StrAppend(&failures, " ", times, ": ", count);
  for (const auto& longest : {counts.longest_wait_in_calm, counts.longest_wait}) {
    for (const absl::Duration wait : longest) absl::StrAppend(&waits, " ", absl::FormatDuration(wait));
  }
  for (const auto& [hour, work] : counts.rush_work) {
    for (const auto& [client, time] : work) absl::StrAppend(&shares, " ", client, " ", absl::FormatDuration(time));
    for (const absl::Duration time : counts.rush_work_of_priority.at(hour)) {
      absl::StrAppend(&shares, " ", absl::FormatDuration(time));
    }
  }
  std::cout << "items " << counts.sent << ", refused for lack of room " << counts.refused << " and of time "
            << counts.too_late << ", retried " << counts.retried << "; ends:" << ends << "; batches " << machine.batches
            << " of up to " << machine.largest_batch << ", failed " << machine.failed << ", items by failures"
            << failures << "; replicas " << machine.replicas << "; most that waited " << machine.max_waiting
            << "; longest waits (low, normal, high; in calm, then at all times)" << waits << "; in rushes" << shares
            << std::endl;
}

// As long as a whole line of one priority takes at its share of the machine, and a stall. Half of it is for what is
// tried again, and for items that take longer than it was thought.
absl::Duration LongestWait(Priority priority) {
  const PriorityRounds::Options rounds;
  return 1.5 * kMaxQueued * kAllWeights / rounds.weights[static_cast<size_t>(priority)] + kStall;
}

INSTANTIATE_TEST_SUITE_P(Items, ClassifierDay, testing::Values(DayItems::kDocuments, DayItems::kImages),
                         [](const auto& items) { return items.index == 0 ? "Documents" : "Images"; });

TEST_P(ClassifierDay, EndsWithEveryItemAnsweredAndNothingLeftOver) {
  Run(kSimulatedHours);
  const ItemCounts& counts = traffic_.counts();
  const ClassifierDayMachine::Counts& machine = machine_.counts();
  PrintTotals(counts, machine);

  // No item starves, at any priority. No item waits long while there is time for all.
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    EXPECT_LE(counts.longest_wait[priority], LongestWait(static_cast<Priority>(priority)));
    EXPECT_LE(counts.longest_wait_in_calm[priority], 3 * kLongestBatch);
  }
  // Who asked for more than there was got as much as the others who did, and each priority what its weight says. An
  // item may take a tenth of what a client gets in a rush; and images share first the time of those who prepare them.
  const double even = GetParam() == DayItems::kImages ? 1.75 : 1.4;
  EXPECT_EQ(counts.rush_work.size(), kSimulatedHours == ItemCounts::kHours ? 2u : 1u);
  for (const auto& [hour, work] : counts.rush_work) {
    ASSERT_EQ(work.size(), 4u);
    const auto [min, max] =
        std::minmax_element(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(max->second, even * min->second) << max->first << " and " << min->first << " at " << hour;
    const auto& of_priority = counts.rush_work_of_priority.at(hour);
    const absl::Duration all = std::accumulate(of_priority.begin(), of_priority.end(), absl::ZeroDuration());
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      const absl::Duration share = all * PriorityRounds::Options().weights[priority] / kAllWeights;
      EXPECT_LE(of_priority[priority], even * share) << "priority " << priority << " at " << hour;
      EXPECT_GE(of_priority[priority], share / even) << "priority " << priority << " at " << hour;
    }
  }
  for (int hour = 0; hour < kSimulatedHours; ++hour) {
    // What rushes, stalls and failures taught is forgotten: an hour later, and at night, hardly anyone is refused.
    if (IsNight(hour) || (hour > 0 && IsRushHour(hour - 1))) {
      EXPECT_LE(counts.refused_in_hour[hour], counts.sent_in_hour[hour] / 100) << "at " << hour;
    }
    if (IsRushHour(hour)) {
      EXPECT_GT(counts.refused_in_hour[hour], 100) << "at " << hour;
    }
  }
  // What was tried again waited beside what may wait. One client may fill the queue; each other one may have as many
  // waiting as keep an equal number for each within the limit. So the rush's six clients may fill it twice, not more.
  const DynamicBatchingEngine::Options options = EngineOptions();
  const auto workers = static_cast<int64_t>(options.workers.size());
  const int64_t in_batches = workers * options.items.batches.max_batch_size;
  EXPECT_LE(machine.max_waiting, 2 * options.items.limits.max_queued + in_batches);
  // Names of clients, answered calls: a list that only grows would have one of these for each item.
  constexpr int64_t kOfTheMoment = 64 << 10;
  EXPECT_LT(heap_in_the_evening_ - heap_in_the_morning_, kOfTheMoment + 4 * counts.sent);
  // What is to be survived did happen.
  for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kCancelled, absl::StatusCode::kInternal,
                                      absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable}) {
    EXPECT_GT(counts.ends.count(code), 0u) << absl::StatusCodeToString(code) << " never came to pass";
  }
  for (const int64_t failures : {1, 3}) EXPECT_GT(counts.failures.count(failures), 0u) << failures;
  EXPECT_GT(counts.retried, 10);
  EXPECT_GT(GetParam() == DayItems::kImages ? counts.ends.count(absl::StatusCode::kInvalidArgument) : counts.too_late,
            0u);
  EXPECT_EQ(machine.largest_batch, options.items.batches.max_batch_size);
  EXPECT_GE(machine.replicas, workers + kSimulatedHours);
}

}  // namespace longshort::core::classifier_day_test
