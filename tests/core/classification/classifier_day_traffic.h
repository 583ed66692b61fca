// The items that clients send to a classifier on the simulated day.
//
//   items/s                  rush                              rush
//     |                  ________##__________________________________##____
//     |                _/        ##                                  ##     \_
//     |_______________/          ##                                  ##       \____
//     0h             6h          10h                                 19h     22h   24h
//
// All day: people with a few items a call, programs in a hurry (high priority, deadlines from 1 ms to an hour), a job
// that sends many at once (low priority). In a rush, four clients of normal priority, one of high and one of low each
// ask for more than their share, one of them with items that the model cannot stand, and most others stay away. A few
// times a greedy one sends all it has at once. Now and then someone leaves, or sends what the model cannot stand or
// what is not an image.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/schedule/work_attributes.h"
#include "tests/core/classification/classifier_day_machine.h"
#include "tests/core/fakes/day_hours.h"
#include "tests/core/fakes/timeline.h"

namespace longshort::core {

// Nothing stalls before this in any hour.
inline constexpr absl::Duration kFirstStall = absl::Minutes(41);

enum class DayItems { kDocuments, kImages };

// What became of the items.
struct ItemCounts {
  static constexpr int kHours = 24;

  int64_t sent = 0;
  int64_t refused = 0;   // for lack of room
  int64_t too_late = 0;  // the deadline could not be met
  int64_t retried = 0;
  std::map<absl::StatusCode, int64_t> ends;
  std::map<int64_t, int64_t> failures;  // items by the batches that failed with them
  std::array<int64_t, kHours> sent_in_hour = {};
  std::array<int64_t, kHours> refused_in_hour = {};  // for lack of room; without clients that send many at once
  // Until a batch of it began, or its end: while all that comes can be done and nothing stalls, and at all times.
  std::array<absl::Duration, kPriorities> longest_wait_in_calm = {};
  std::array<absl::Duration, kPriorities> longest_wait = {};
  // The machine's time that was taken while all clients of a rush asked for more, by hour: by each of those of normal
  // priority, and by each priority.
  std::map<int, std::map<std::string, absl::Duration>> rush_work;
  std::map<int, std::array<absl::Duration, kPriorities>> rush_work_of_priority;
};

// Lives as long as the timeline's events.
class ClassifierDayTraffic final {
 public:
  ClassifierDayTraffic(DayItems items, uint32_t seed, Timeline& timeline, const Clock& clock,
                       ClassifierDayMachine& machine, const DynamicBatchingEngine::Options& options)
      : items_(items), random_(seed), timeline_(timeline), clock_(clock), machine_(machine), options_(options) {}

  // Clients come from now on, for a day.
  void Begin();
  // Whether new ones stay away for the moment.
  void SetCalm(bool calm) { calm_ = calm; }
  // One item comes, whatever becomes of it.
  void Probe();
  // Looks at those that ended.
  void HearEnds();

  static bool IsGreedyHour(int hour) { return hour == 8 || hour == 13 || hour == 17; }

  const ItemCounts& counts() const { return counts_; }
  int64_t outstanding() const { return static_cast<int64_t>(outstanding_.size()); }

 private:
  using Items = std::vector<std::shared_ptr<ItemCall>>;
  // The waiting items, of all clients or of one.
  struct Waiting {
    int64_t items = 0;
    absl::Duration min;  // that they take, in batches as large as can be
    absl::Duration max;  // each alone
  };

  int64_t UpTo(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)) + 1; }
  bool OneIn(int64_t n) { return UpTo(n) == 1; }
  absl::Duration Exponential(absl::Duration mean);
  int Hour() const;
  absl::Duration InHour() const { return (clock_.Now() - begin_) % absl::Hours(1); }
  bool InRush() const;

  // The next arrivals of everyone, and of one client of a rush.
  void ScheduleArrival();
  void ScheduleRush(size_t client, absl::Time end);
  void Arrive();

  // So many items of one client.
  Items NewItems(const std::string& client, Priority priority, int64_t count);
  void Submit(const Items& items, int64_t retries);
  absl::Status SendAndCheck(const std::shared_ptr<ItemCall>& call, absl::Duration work_until_prepared);
  bool HasLearned() const;  // the engine, what items take
  Waiting WaitingOf(const std::string* client) const;
  // Fails the test unless the rules allow it.
  void CheckAdmission(const ItemCall& call, const Waiting& of_client);
  void CheckRefusal(const ItemCall& call, const absl::Status& refusal, const Waiting& all, const Waiting& of_client);
  void CheckTooLate(const ItemCall& call, absl::Time now) const;
  void CheckEnd(const ItemCall& call) const;
  void Count(const ItemCall& call);

  const DayItems items_;
  std::mt19937 random_;
  Timeline& timeline_;
  const Clock& clock_;
  ClassifierDayMachine& machine_;
  const DynamicBatchingEngine::Options options_;
  bool calm_ = false;
  absl::Time begin_;
  int32_t ids_ = 0;
  std::set<std::shared_ptr<ItemCall>> outstanding_;
  ItemCounts counts_;
};

}  // namespace longshort::core
