// A day of traffic: 86,400 simulated seconds of clients who come and go, rushes, a machine that stalls and fails, and
// engines that are replaced. And a morning on three machines, of which one fails whatever it tries for a while. Every
// answer is compared with the model's own, every end must have its reason, no worker may sleep while there is something
// for it, and after every hour nothing may be left over.

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cache/cache_pages.h"
#include "core/schedule/work_order.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/fake_tokenizer.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/simulated_service.h"
#include "tests/core/fakes/step_loop_harness.h"
#include "tests/core/fakes/timeline.h"
#include "tests/core/generation/day_call.h"
#include "tests/core/generation/day_traffic.h"

namespace longshort::core::day_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kEndOfDay = 12;  // sanitizers make it slow
#else
constexpr int kEndOfDay = kHours;
#endif
// The hours of the morning.
constexpr int kMorning = 8;
constexpr int kNoon = 13;

constexpr absl::Duration kTimeToLive = absl::Minutes(20);
constexpr absl::Duration kMaxQueued = absl::Seconds(30);
constexpr absl::Duration kMaxQueuedPerClient = absl::Seconds(6);
constexpr absl::Duration kStall = absl::Seconds(20);
// In these hours, if there are several workers: whose model is given up gets no other for a while; and one of them
// fails whatever it tries.
constexpr int kHourWithoutReplicas = 11;
constexpr int kHourOfBadWorker = 12;
constexpr int kBadWorker = 1;

SimulatedService::Options ServiceOptions(int workers) {
  SimulatedService::Options options;
  options.workers = workers;
  options.queue.limits.max_queued_cost = kMaxQueued;
  options.queue.limits.max_queued_cost_per_client = kMaxQueuedPerClient;
  options.step_loop.max_streams = kStreams;
  options.step_loop.steps.target_step = absl::Milliseconds(400);
  options.step_loop.cache_bytes = 80'000;  // twice what the streams need
  options.sessions.time_to_live = kTimeToLive;
  options.sessions.max_remembered = 32;
  return options;
}

class Day {
 public:
  Day(uint32_t seed, int workers)
      : vocabulary_(*Vocabulary::Make(model_.info().vocabulary_size, std::make_shared<FakeTokenizer>(SmallPieces()))),
        service_(model_, vocabulary_, clock_, ServiceOptions(workers)),
        traffic_(seed, workers, timeline_, clock_, service_, model_, vocabulary_),
        has_several_workers_(workers > 1) {
    model_.on_step = [this](absl::Span<const models::Slice> slices) { return RunStep(slices); };
    model_.on_replicate = [this] {
      return has_replicas_ ? absl::OkStatus() : absl::ResourceExhaustedError("no memory for a replica");
    };
  }

  // From one hour of the day to another.
  void Run(int begin, int end) {
    const absl::Time midnight = clock_.Now() - absl::Hours(begin);
    traffic_.Begin(begin);
    for (int hour = begin; hour < end; ++hour) {
      ScheduleTroubles(hour, midnight + absl::Hours(hour));
      RunUntil(midnight + absl::Hours(hour) + absl::Minutes(58));
      traffic_.SetCalm(true);
      RunUntil(midnight + absl::Hours(hour + 1));
      RunUntilIdle();
      CheckNothingIsLeft();
      traffic_.SetCalm(false);
      if (hour == begin) heap_at_first_ = HeapWithoutSessions();
      if (::testing::Test::HasFatalFailure()) return;
    }
    heap_at_last_ = HeapWithoutSessions();
  }

  const DayCounts& counts() const { return traffic_.counts(); }
  SimulatedService::Counts service_counts() const { return service_.counts(); }
  int64_t heap_growth() const { return heap_at_last_ - heap_at_first_; }

 private:
  void ScheduleTroubles(int hour, absl::Time full_hour) {
    const auto at_minute = [&](int minute, auto event) { timeline_.At(full_hour + absl::Minutes(minute), event); };
    at_minute(17, [this] { throws_ = true; });
    at_minute(41, [this] { stalls_ = true; });
    if (hour == 3 || hour == 7 || hour == 10) {  // at night, by day, in a rush; the last one then lives long
      at_minute(15, [this] { service_.Reload(clock_.Now() + absl::Seconds(3)); });
    }
    if (has_several_workers_ && hour == kHourWithoutReplicas) {
      at_minute(10, [this] { traffic_.SetPoisonous(false); });
      at_minute(16, [this] { has_replicas_ = false; });
      at_minute(26, [this] {
        has_replicas_ = true;
        traffic_.SetPoisonous(true);
      });
    }
    if (has_several_workers_ && hour == kHourOfBadWorker) {
      at_minute(20, [this] { has_bad_worker_ = true; });
      at_minute(50, [this] { has_bad_worker_ = false; });
    }
  }

  absl::Status RunStep(absl::Span<const models::Slice> slices) {
    absl::Duration step = kFixedStep;
    bool fails = false;
    for (const models::Slice& slice : slices) {
      const auto tokens = static_cast<int64_t>(slice.tokens.size());
      step += tokens == 1 ? kDecodingRow : kPrefillRow * tokens;
      fails |= std::count(slice.tokens.begin(), slice.tokens.end(), kPoison) > 0;
    }
    if (std::exchange(stalls_, false)) step += kStall;
    const int worker = service_.worker_in_step();
    service_.StayInStep(step);
    if (std::exchange(throws_, false)) throw std::runtime_error("the device is gone");
    fails |= has_bad_worker_ && worker == kBadWorker;
    return fails ? absl::InternalError("this step cannot be run") : absl::OkStatus();
  }

  // Does what there is to do now; if nothing, time passes.
  void RunRound(absl::Time end) {
    timeline_.RunDue(clock_.Now());
    if (service_.RunRound()) return;
    ASSERT_FALSE(service_.HasSleeperBesideWork());
    const absl::Time next = std::min({timeline_.next(), service_.next(), end});
    if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
    if (clock_.Now() - checked_ < absl::Minutes(1)) return;
    checked_ = clock_.Now();
    ASSERT_TRUE(service_.CheckInvariants().ok()) << service_.CheckInvariants();
  }

  void RunUntil(absl::Time end) {
    while (clock_.Now() < end && !::testing::Test::HasFatalFailure()) RunRound(end);
  }

  // Until no call is outstanding.
  void RunUntilIdle() {
    const absl::Time latest = clock_.Now() + absl::Minutes(10);
    while (service_.busy() && !::testing::Test::HasFatalFailure()) {
      ASSERT_LT(clock_.Now(), latest) << "the line does not get shorter";
      RunRound(latest);
    }
  }

  void CheckNothingIsLeft() {
    const absl::Status invariants = service_.CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants;
    const CacheState cache = service_.cache();
    EXPECT_TRUE(FitIn(cache.in_use, models::CachePages()));
    EXPECT_TRUE(FitIn(cache.reserved, models::CachePages()));
    EXPECT_EQ(service_.held_tokens(), 0);
    EXPECT_EQ(counts().outstanding(), 0);
  }

  int64_t HeapWithoutSessions() {
    clock_.Advance(kTimeToLive);
    while (service_.sessions().EndExpired() <= clock_.Now()) continue;
    EXPECT_EQ(service_.sessions().counts().sessions, 0);
    EXPECT_EQ(service_.sessions().counts().tokens, 0);
    service_.RunRound();
    EXPECT_EQ(service_.cache().parked_sequences, 0);
    return LiveHeapBytes();
  }

  FakeClock clock_;
  FakeLanguageModel model_;
  const Vocabulary vocabulary_;
  Timeline timeline_;
  SimulatedService service_;
  DayTraffic traffic_;
  const bool has_several_workers_;
  bool throws_ = false;
  bool stalls_ = false;
  bool has_replicas_ = true;
  bool has_bad_worker_ = false;
  absl::Time checked_;
  int64_t heap_at_first_ = 0;
  int64_t heap_at_last_ = 0;
};

// As long as a whole line of one priority takes at its share of the machine, and a stall.
absl::Duration LongestWait(Priority priority) {
  const PriorityRounds::Options rounds;
  const int64_t all = std::accumulate(rounds.weights.begin(), rounds.weights.end(), int64_t{0});
  return kMaxQueued * all / rounds.weights[static_cast<size_t>(priority)] + kStall;
}

void PrintTotals(const DayCounts& counts, const SimulatedService::Counts& service) {
  std::string ends;
  for (const auto& [code, count] : counts.ends) absl::StrAppend(&ends, " ", absl::StatusCodeToString(code), " ", count);
  std::cout << "calls " << counts.sent << ", refused for lack of room " << counts.refused << " and of time "
            << counts.too_late << ", retried " << counts.retried << "; ends:" << ends << "; sessions closed "
            << counts.closed_sessions << ", gone " << counts.gone_sessions << "; slow readers " << counts.slow_readers
            << "; steps " << service.steps << " of " << service.rows << " rows, failed " << service.failed_steps
            << ", models given up " << service.rebuilt << "; prefix hits " << service.cache.hits << ", resumed "
            << service.cache.resumed << ", evicted " << service.cache.evicted_parked + service.cache.evicted_ends
            << "; longest waits (low, normal, high)";
  for (const absl::Duration wait : counts.longest_wait) std::cout << " " << absl::FormatDuration(wait);
  std::cout << std::endl;
}

// Of the hours that were simulated.
void Check(const Day& day, int begin, int end) {
  const DayCounts& counts = day.counts();
  const SimulatedService::Counts service = day.service_counts();
  PrintTotals(counts, service);

  // No call starves, at any priority.
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    EXPECT_LE(counts.longest_wait[static_cast<size_t>(priority)], LongestWait(priority));
  }
  for (int hour = begin; hour < end; ++hour) {
    // Estimates recover from rushes, stalls and failures: an hour later, and at night, no call is refused.
    if (IsNight(hour) || (hour > 0 && IsRushHour(hour - 1))) {
      EXPECT_EQ(counts.refused_in_hour[hour], 0) << "at " << hour;
    }
    if (!IsRushHour(hour)) continue;
    EXPECT_GT(counts.refused_in_hour[hour], 100) << "at " << hour;
    // Who asked for more than there was got as much as the others who did.
    const std::map<std::string, absl::Duration>& work = counts.rush_work.at(hour);
    ASSERT_EQ(work.size(), 4u);
    const auto [min, max] =
        std::minmax_element(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(max->second, 1.1 * min->second) << max->first << " and " << min->first << " at " << hour;
  }
  // Names of clients, ended sessions, answered calls: a list that only grows would have one of these for each call.
  // What lives at noon, where the shorter days end, differs from what lived before by tens of KiB.
  constexpr int64_t kOfTheMoment = 64 << 10;
  EXPECT_LT(day.heap_growth(), kOfTheMoment + 4 * counts.sent);
  // What is to be survived did happen.
  for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kCancelled, absl::StatusCode::kInternal,
                                      absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable}) {
    EXPECT_GT(counts.ends.count(code), 0u) << absl::StatusCodeToString(code) << " never came to pass";
  }
  for (const int64_t happened : {counts.too_late, counts.retried, counts.closed_sessions, counts.gone_sessions,
                                 counts.shared_sessions, counts.slow_readers, service.cache.hits, service.cache.resumed,
                                 service.cache.evicted_parked, service.cache.evicted_ends}) {
    EXPECT_GT(happened, 10);
  }
  EXPECT_GE(service.rebuilt, end - begin);
}

TEST(ADayOfTraffic, EndsWithEveryCallAnsweredAndNothingLeftOver) {
  Day day(20240229, 1);
  day.Run(0, kEndOfDay);
  Check(day, 0, kEndOfDay);
}

TEST(AMorningOfTraffic, OnSeveralWorkersEndsSoToo) {
  Day day(20261123, 3);
  day.Run(kMorning, kNoon);
  Check(day, kMorning, kNoon);
  // The bad worker tried again and again.
  EXPECT_GT(day.service_counts().failed_steps, 500);
}

}  // namespace longshort::core::day_test
