// The calls that clients make on the simulated day.
//
//   calls/s                     rush                              rush
//     |                  ________##__________________________________##____
//     |                _/        ##                                  ##     \_
//     |_______________/          ##                                  ##       \____
//     0h             6h          10h                                 19h     22h   24h
//
// All day: people who chat (sessions, a shared beginning), programs in a hurry (high priority, deadlines from 1 ms to
// an hour), a job that scores documents (low priority), and passers-by, each with a name of its own or none. In a rush,
// four clients of normal priority and one of low each ask for more than their share. A few times a greedy one sends all
// it has at once. Now and then someone leaves, reads slowly, or sends what the model cannot stand.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/core/fakes/day_hours.h"
#include "tests/core/fakes/timeline.h"
#include "tests/core/generation/day_call.h"

namespace longshort::core {

inline constexpr int kHours = 24;

// What became of the calls.
struct DayCounts {
  int64_t sent = 0;
  int64_t ended = 0;
  int64_t refused = 0;   // for lack of room
  int64_t too_late = 0;  // the deadline could not be met
  int64_t retried = 0;
  std::map<absl::StatusCode, int64_t> ends;
  std::array<int64_t, kHours> sent_in_hour = {};
  std::array<int64_t, kHours> refused_in_hour = {};           // for lack of room; not the greedy one's
  std::array<absl::Duration, kPriorities> longest_wait = {};  // until the first step
  // By hour, the machine's time that calls of each of the four in a rush took while all of them asked for more.
  std::map<int, std::map<std::string, absl::Duration>> rush_work;
  int64_t gone_sessions = 0;  // NOT_FOUND, after their time to live
  int64_t closed_sessions = 0;
  int64_t shared_sessions = 0;  // ABORTED: in use by another call
  int64_t slow_readers = 0;

  int64_t outstanding() const { return sent - refused - too_late - ended; }
};

// Lives as long as the timeline's events.
class DayTraffic final {
 public:
  // As much as keeps so many workers busy.
  DayTraffic(uint32_t seed, int workers, Timeline& timeline, const Clock& clock, SimulatedService& service,
             const FakeLanguageModel& model, const Vocabulary& vocabulary)
      : random_(seed),
        workers_(workers),
        timeline_(timeline),
        clock_(clock),
        service_(service),
        model_(model),
        vocabulary_(vocabulary) {}

  // Clients come from now on, when it is this hour of the day.
  void Begin(int hour);
  // Whether new ones stay away for the moment.
  void SetCalm(bool calm) { calm_ = calm; }
  // Whether some send what the model cannot stand, which may cost every worker its model.
  void SetPoisonous(bool poisonous) { poisonous_ = poisonous; }

  const DayCounts& counts() const { return counts_; }

 private:
  struct Conversation {
    std::string client;
    std::string id;
    std::vector<int32_t> history;
    int64_t turns = 0;
    absl::Time last_use;
  };

  int64_t UpTo(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)) + 1; }
  bool OneIn(int64_t n) { return UpTo(n) == 1; }
  absl::Duration Exponential(absl::Duration mean);
  std::vector<int32_t> NewTokens(int64_t count);
  int Hour() const;

  // The next arrivals of everyone, and of one client of a rush.
  void ScheduleArrival();
  void ScheduleRush(size_t client, absl::Time end);
  void Arrive();

  std::shared_ptr<DayCall> NewCall(std::string client, Priority priority);
  std::shared_ptr<DayCall> Hurried();
  std::shared_ptr<DayCall> Document();
  std::shared_ptr<DayCall> PasserBy();
  std::shared_ptr<DayCall> OfRush(size_t client);
  void BeginConversation();
  void Continue(const std::shared_ptr<Conversation>& conversation);
  void OnTurnEnded(const std::shared_ptr<Conversation>& conversation, const DayCall& call);
  void TryToShare(const std::shared_ptr<DayCall>& call);

  // Makes some of the callers leave, or read slowly.
  void Disturb(const std::shared_ptr<DayCall>& call);
  // Sends a call that continues no session, and sends it again if a refusal says when to.
  void Submit(const std::shared_ptr<DayCall>& call, int64_t retries);
  // Sends it and keeps count. The refusal is checked unless it is the session's.
  absl::Status SendAndCount(const std::shared_ptr<DayCall>& call);
  void Count(const DayCall& call);

  std::mt19937 random_;
  const int workers_;
  Timeline& timeline_;
  const Clock& clock_;
  SimulatedService& service_;
  const FakeLanguageModel& model_;
  const Vocabulary& vocabulary_;
  bool calm_ = false;
  bool poisonous_ = true;
  absl::Time begin_;  // of the day
  int64_t names_ = 0;
  DayCounts counts_;
};

}  // namespace longshort::core
