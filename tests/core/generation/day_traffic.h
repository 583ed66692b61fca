// The calls that clients of a language model make on a simulated day.
//
// All day: people who chat (sessions, a shared beginning), programs in a hurry (high priority, deadlines from 1 ms to
// an hour), a job that scores documents (low priority), and passers-by, each with a name of its own or none. In a rush,
// four clients of normal priority and one of low each ask for more than their share. A few times a greedy one sends all
// it has at once. Now and then someone leaves, reads slowly, or sends what the model cannot stand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/fakes/simulated_day.h"
#include "tests/core/generation/day_call.h"

namespace longshort::core {

struct SessionCounts {
  int64_t gone = 0;  // NOT_FOUND, after their time to live
  int64_t closed = 0;
  int64_t shared = 0;  // ABORTED: in use by another call
};

class DayTraffic final : public DayClients {
 public:
  // As much as keeps so many workers busy.
  DayTraffic(uint32_t seed, int workers, Timeline& timeline, const Clock& clock, SimulatedService& service,
             const FakeLanguageModel& model, const Vocabulary& vocabulary);

  // Whether some send what the model cannot stand, which may cost every worker its model.
  void SetPoisonous(bool poisonous) { poisonous_ = poisonous; }

  const SessionCounts& sessions() const { return sessions_; }
  int64_t slow_readers() const { return slow_readers_; }
  int64_t outstanding() const { return counts_.sent - counts_.refused - counts_.too_late - ended_; }

 private:
  struct Conversation {
    std::string client;
    std::string id;
    std::vector<int32_t> history;
    int64_t turns = 0;
    absl::Time last_use;
  };

  static Rates RatesFor(int workers);
  void Arrive() override;
  void ArriveInRush(size_t client) override { Submit(OfRush(client), 0); }
  void ArriveGreedily() override;

  std::vector<int32_t> NewTokens(int64_t count);
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

  const int workers_;
  SimulatedService& service_;
  const FakeLanguageModel& model_;
  const Vocabulary& vocabulary_;
  bool poisonous_ = true;
  int64_t names_ = 0;
  int64_t ended_ = 0;
  int64_t slow_readers_ = 0;
  SessionCounts sessions_;
};

}  // namespace longshort::core
