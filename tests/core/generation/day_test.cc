// A day of traffic: 86,400 simulated seconds of clients who come and go, rushes, a machine that stalls and fails, and
// engines that are replaced. And a morning on three machines, of which one fails whatever it tries for a while. Every
// answer is compared with the model's own, every end must have its reason, no worker may sleep while there is something
// for it, and after every hour nothing may be left over.

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/cache/cache_grid.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_tokenizer.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/simulated_day.h"
#include "tests/core/fakes/simulated_service.h"
#include "tests/core/fakes/step_loop_harness.h"
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

class Day final : public SimulatedDay {
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

  const DayTraffic& traffic() const { return traffic_; }
  SimulatedService::Counts service_counts() const { return service_.counts(); }

 private:
  DayClients& clients() override { return traffic_; }
  bool busy() const override { return service_.busy(); }

  void ScheduleTroubles(int hour, absl::Time full_hour) override {
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

  void RunRound(absl::Time end) override {
    timeline_.RunDue(clock_.Now());
    if (service_.RunRound()) return;
    ASSERT_FALSE(service_.HasSleeperBesideWork());
    const absl::Time next = std::min({timeline_.next(), service_.next(), end});
    if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
    if (clock_.Now() - checked_ < absl::Minutes(1)) return;
    checked_ = clock_.Now();
    ASSERT_TRUE(service_.CheckInvariants().ok()) << service_.CheckInvariants();
  }

  void CheckNothingIsLeft() override {
    const absl::Status invariants = service_.CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants;
    const CacheState cache = service_.cache();
    EXPECT_TRUE(FitIn(cache.in_use, models::CachePages()));
    EXPECT_TRUE(FitIn(cache.reserved, models::CachePages()));
    EXPECT_EQ(service_.held_tokens(), 0);
    EXPECT_EQ(traffic_.outstanding(), 0);
  }

  // Without sessions.
  int64_t HeapBytes() override {
    clock_.Advance(kTimeToLive);
    while (service_.sessions().EndExpired() <= clock_.Now()) continue;
    EXPECT_EQ(service_.sessions().counts().sessions, 0);
    EXPECT_EQ(service_.sessions().counts().tokens, 0);
    service_.RunRound();
    EXPECT_EQ(service_.cache().parked_sequences, 0);
    return LiveHeapBytes();
  }

  FakeLanguageModel model_;
  const Vocabulary vocabulary_;
  SimulatedService service_;
  DayTraffic traffic_;
  const bool has_several_workers_;
  bool throws_ = false;
  bool stalls_ = false;
  bool has_replicas_ = true;
  bool has_bad_worker_ = false;
  absl::Time checked_;
};

// Of the hours that were simulated.
void Check(const Day& day, int begin, int end) {
  const DayCounts& counts = day.traffic().counts();
  const SimulatedService::Counts service = day.service_counts();
  const SessionCounts& sessions = day.traffic().sessions();
  std::cout << counts.Describe("calls") << "; sessions closed " << sessions.closed << ", gone " << sessions.gone
            << "; slow readers " << day.traffic().slow_readers() << "; steps " << service.steps << " of "
            << service.rows << " rows, failed " << service.failed_steps << ", models given up " << service.rebuilt
            << "; prefix hits " << service.cache.hits << ", resumed " << service.cache.resumed << ", evicted "
            << service.cache.evicted_parked + service.cache.evicted_ends << std::endl;
  CheckDay(day, counts, begin, end, /*even=*/1.1, /*refused=*/0);
  // No call starves, at any priority.
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    EXPECT_LE(counts.longest_wait[static_cast<size_t>(priority)], LongestWait(priority, kMaxQueued, kStall));
  }
  // What is to be survived did happen.
  for (const int64_t happened :
       {counts.too_late, sessions.closed, sessions.gone, sessions.shared, day.traffic().slow_readers(),
        service.cache.hits, service.cache.resumed, service.cache.evicted_parked, service.cache.evicted_ends}) {
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
