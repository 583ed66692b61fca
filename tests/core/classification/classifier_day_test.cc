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
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/simulated_day.h"

namespace longshort::core::classifier_day_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSimulatedHours = 12;  // sanitizers make it slow
#else
constexpr int kSimulatedHours = kHours;
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

class ClassifierDay final : public SimulatedDay {
 public:
  explicit ClassifierDay(DayItems items)
      : machine_(clock_, EngineOptions()), traffic_(items, 20240229, timeline_, clock_, machine_, EngineOptions()) {}

  const ClassifierDayTraffic& traffic() const { return traffic_; }
  const ClassifierDayMachine::Counts& machine_counts() const { return machine_.counts(); }

 private:
  DayClients& clients() override { return traffic_; }
  bool busy() const override { return traffic_.outstanding() > 0; }
  int64_t HeapBytes() override { return LiveHeapBytes(); }

  void ScheduleTroubles(int hour, absl::Time full_hour) override {
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
  }

  void CheckNothingIsLeft() override {
    EXPECT_EQ(machine_.state().waiting_items, 0);
    EXPECT_EQ(machine_.state().waiting_bytes, 0);
    ASSERT_EQ(traffic_.outstanding(), 0);
  }

  void RunRound(absl::Time end) override {
    timeline_.RunDue(clock_.Now());
    const absl::Time next = std::min({timeline_.next(), machine_.next(), machine_.next_replica(), end});
    if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
    if (machine_.next_replica() <= clock_.Now()) traffic_.Probe();
    machine_.EndDue();
    traffic_.HearEnds();
  }

  ClassifierDayMachine machine_;
  ClassifierDayTraffic traffic_;
};

void PrintTotals(const DayCounts& counts, const ItemCounts& items, const ClassifierDayMachine::Counts& machine) {
  std::string failures, waits, shares;
  for (const auto& [times, count] : items.failures) absl::StrAppend(&failures, " ", times, ": ", count);
  for (const absl::Duration wait : items.longest_wait_in_calm) absl::StrAppend(&waits, " ", absl::FormatDuration(wait));
  for (const auto& [hour, work] : counts.rush_work) {
    for (const auto& [client, time] : work) absl::StrAppend(&shares, " ", client, " ", absl::FormatDuration(time));
    for (const absl::Duration time : items.rush_work_of_priority.at(hour)) {
      absl::StrAppend(&shares, " ", absl::FormatDuration(time));
    }
  }
  std::cout << counts.Describe("items") << ", in calm" << waits << "; batches " << machine.batches << " of up to "
            << machine.largest_batch << ", failed " << machine.failed << ", items by failures" << failures
            << "; replicas " << machine.replicas << "; most that waited " << machine.max_waiting << "; in rushes"
            << shares << std::endl;
}

class ClassifierDayTest : public testing::TestWithParam<DayItems> {};

INSTANTIATE_TEST_SUITE_P(Items, ClassifierDayTest, testing::Values(DayItems::kDocuments, DayItems::kImages),
                         [](const auto& items) { return items.index == 0 ? "Documents" : "Images"; });

TEST_P(ClassifierDayTest, EndsWithEveryItemAnsweredAndNothingLeftOver) {
  ClassifierDay day(GetParam());
  day.Run(0, kSimulatedHours);
  const DayCounts& counts = day.traffic().counts();
  const ItemCounts& items = day.traffic().item_counts();
  const ClassifierDayMachine::Counts& machine = day.machine_counts();
  PrintTotals(counts, items, machine);

  // An item may take a tenth of what a client gets in a rush; and images share first the time of those who prepare
  // them. What rushes, stalls and failures taught is forgotten, so hardly anyone is refused later.
  const double even = GetParam() == DayItems::kImages ? 1.75 : 1.4;
  CheckDay(day, counts, 0, kSimulatedHours, even, /*refused=*/0.01);
  // No item starves, at any priority: half of the time is for what is tried again, and for items that take longer than
  // it was thought. No item waits long while there is time for all.
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    EXPECT_LE(counts.longest_wait[priority], LongestWait(static_cast<Priority>(priority), 1.5 * kMaxQueued, kStall));
    EXPECT_LE(items.longest_wait_in_calm[priority], 3 * kLongestBatch);
  }
  // In a rush, each priority gets what its weight says.
  for (const auto& [hour, work] : items.rush_work_of_priority) {
    const absl::Duration all = std::accumulate(work.begin(), work.end(), absl::ZeroDuration());
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      const absl::Duration share = all * PriorityRounds::Options().weights[priority] / kAllWeights;
      EXPECT_LE(work[priority], even * share) << "priority " << priority << " at " << hour;
      EXPECT_GE(work[priority], share / even) << "priority " << priority << " at " << hour;
    }
  }
  // What was tried again waited beside what may wait. One client may fill the queue; each other one may have as many
  // waiting as keep an equal number for each within the limit. So the rush's six clients may fill it twice, not more.
  const DynamicBatchingEngine::Options options = EngineOptions();
  const auto workers = static_cast<int64_t>(options.workers.size());
  const int64_t in_batches = workers * options.items.batches.max_batch_size;
  EXPECT_LE(machine.max_waiting, 2 * options.items.limits.max_queued + in_batches);
  // What is to be survived did happen.
  for (const int64_t failures : {1, 3}) EXPECT_GT(items.failures.count(failures), 0u) << failures;
  EXPECT_GT(GetParam() == DayItems::kImages ? counts.ends.count(absl::StatusCode::kInvalidArgument) : counts.too_late,
            0u);
  EXPECT_EQ(machine.largest_batch, options.items.batches.max_batch_size);
  EXPECT_GE(machine.replicas, workers + kSimulatedHours);
}

}  // namespace longshort::core::classifier_day_test
