// What the simulated days of both kinds of engine have in common: when clients come, what became of their calls, and
// what holds of any day.
//
//   calls/s                     rush                              rush
//     |                  ________##__________________________________##____
//     |                _/        ##                                  ##     \_
//     |_______________/          ##                                  ##       \____
//     0h             6h          10h                                 19h     22h   24h
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/schedule/work_attributes.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/timeline.h"

namespace longshort::core {

inline constexpr int kHours = 24;
inline constexpr int64_t kMaxRetries = 3;

inline bool IsNight(int hour) { return hour < 6 || hour >= 22; }

// A rush takes a part of these hours.
inline constexpr std::array<int, 2> kRushHours = {10, 19};
inline constexpr absl::Duration kRushBegin = absl::Minutes(10);
inline constexpr absl::Duration kRushEnd = absl::Minutes(22);
// So long after it began, all of its clients have a line.
inline constexpr absl::Duration kLinesFill = absl::Minutes(1);

inline bool IsRushHour(int hour) { return std::count(kRushHours.begin(), kRushHours.end(), hour) > 0; }

// Clients that send many calls at once: one all that it has, and one of low priority.
inline constexpr char kGreedy[] = "greedy";
inline constexpr char kJob[] = "job";

// What became of the calls, or items.
struct DayCounts {
  int64_t sent = 0;
  int64_t refused = 0;   // for lack of room
  int64_t too_late = 0;  // the deadline could not be met
  int64_t retried = 0;
  std::map<absl::StatusCode, int64_t> ends;
  std::array<int64_t, kHours> sent_in_hour = {};
  std::array<int64_t, kHours> refused_in_hour = {};           // for lack of room; without kGreedy and kJob
  std::array<absl::Duration, kPriorities> longest_wait = {};  // for the machine
  // By hour, the machine's time that calls of each of the four clients of normal priority in a rush took while all of
  // them asked for more.
  std::map<int, std::map<std::string, absl::Duration>> rush_work;

  // "calls 12, refused for lack of room 3 ..."
  std::string Describe(const std::string& calls) const;
};

// The clients' part of a day. Lives as long as the timeline's events.
class DayClients {
 public:
  virtual ~DayClients() = default;

  // Clients come from now on, when it is this hour of the day.
  void Begin(int hour);
  // Whether new ones stay away for the moment.
  void SetCalm(bool calm) { calm_ = calm; }

  const DayCounts& counts() const { return counts_; }

 protected:
  struct Rates {
    // Arrivals a second.
    double at_night = 0;
    double by_day = 0;
    std::vector<double> rush;  // of each client of a rush
    std::vector<int> greedy_hours;
  };

  DayClients(uint32_t seed, Rates rates, Timeline& timeline, const Clock& clock)
      : timeline_(timeline), clock_(clock), random_(seed), rates_(std::move(rates)) {}

  // Someone comes; a client of a rush sends another call; kGreedy sends all it has.
  virtual void Arrive() = 0;
  virtual void ArriveInRush(size_t client) = 0;
  virtual void ArriveGreedily() = 0;

  uint32_t Random() { return random_(); }
  int64_t UpTo(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)) + 1; }
  bool OneIn(int64_t n) { return UpTo(n) == 1; }
  absl::Duration Exponential(absl::Duration mean);
  // From a millisecond to an hour, each power of ten as likely as the other.
  absl::Time AnyDeadline();

  absl::Time begin() const { return begin_; }
  int Hour() const;
  bool InRush() const;
  // Whether each client of a rush has calls in line.
  bool AllAskForMore() const { return InRush() && InHour() > kRushBegin + kLinesFill; }
  absl::Duration InHour() const { return (clock_.Now() - begin_) % absl::Hours(1); }

  void CountSent(const std::string& client, const absl::Status& status);
  void CountWait(Priority priority, absl::Duration wait);
  // Calls `again(retries - 1)` when a refusal says, unless there are no retries left.
  void Retry(const absl::Status& status, int64_t retries, std::function<void(int64_t)> again);

  Timeline& timeline_;
  const Clock& clock_;
  DayCounts counts_;

 private:
  void ScheduleArrival();
  void ScheduleRush(size_t client, absl::Time end);

  std::mt19937 random_;
  const Rates rates_;
  bool calm_ = false;
  absl::Time begin_;  // of the day
};

// A day, or a part of it, on an engine.
class SimulatedDay {
 public:
  virtual ~SimulatedDay() = default;

  // From one hour of the day to another. Troubles may come until minute 58 of each hour; at its end, all must be done.
  void Run(int begin, int end);
  // From the end of its first hour to the end.
  int64_t heap_growth() const { return heap_at_last_ - heap_at_first_; }

 protected:
  virtual DayClients& clients() = 0;
  virtual void ScheduleTroubles(int hour, absl::Time full_hour) = 0;
  // Does what there is to do now; if nothing, time passes, but not beyond `end`.
  virtual void RunRound(absl::Time end) = 0;
  virtual bool busy() const = 0;
  virtual void CheckNothingIsLeft() = 0;
  // The heap bytes of the parts that outlive their calls.
  virtual int64_t HeapBytes() = 0;

  FakeClock clock_;
  Timeline timeline_;

 private:
  void RunUntil(absl::Time end);
  void RunUntilIdle();

  int64_t heap_at_first_ = 0;
  int64_t heap_at_last_ = 0;
};

// As long as a whole line of one priority, of so much work, takes at its share of the machine, and a stall.
absl::Duration LongestWait(Priority priority, absl::Duration max_queued, absl::Duration stall);

// What holds of the hours that were simulated, on any machine:
// - In a rush, the clients that ask for more than the machine has get equal shares, within a factor of `even`.
// - An hour after a rush, and at night, at most a part of `refused` is refused. In a rush, many are.
// - Nothing that is kept for each call grows.
// - What is to be survived has happened.
void CheckDay(const SimulatedDay& day, const DayCounts& counts, int begin, int end, double even, double refused);

}  // namespace longshort::core
