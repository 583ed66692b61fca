#include "tests/core/generation/day_traffic.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace longshort::core {
namespace {

// The clients of a rush: four of normal priority, of which two ask for several times what the others ask for, and one
// that scores.
constexpr std::array<double, 5> kRushRates = {0.6, 0.6, 1.2, 2.4, 0.5};  // calls a second, for each worker
constexpr size_t kScores = 4;

constexpr int64_t kGreedyCalls = 80;  // for each worker

// All chats begin with one of three texts, of two blocks of the cache and some more.
constexpr int64_t kSharedBeginnings = 3;
constexpr int64_t kSharedTokens = 135;
constexpr int64_t kMaxTurns = 8;

std::vector<int32_t> SharedBeginning(int64_t which) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < kSharedTokens; ++i) tokens.push_back(static_cast<int32_t>(4 + (i * i * 7 + i + which) % 11));
  return tokens;
}

}  // namespace

// A worker can do about 1.2 calls of the usual mix in a second.
DayClients::Rates DayTraffic::RatesFor(int workers) {
  Rates rates{.at_night = 0.03 * workers, .by_day = 0.35 * workers, .rush = {}, .greedy_hours = {8, 13, 17, 21}};
  for (const double rate : kRushRates) rates.rush.push_back(workers * rate);
  return rates;
}

DayTraffic::DayTraffic(uint32_t seed, int workers, Timeline& timeline, const Clock& clock, SimulatedService& service,
                       const FakeLanguageModel& model, const Vocabulary& vocabulary)
    : DayClients(seed, RatesFor(workers), timeline, clock),
      workers_(workers),
      service_(service),
      model_(model),
      vocabulary_(vocabulary) {}

std::vector<int32_t> DayTraffic::NewTokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(3 + UpTo(11)));
  return tokens;
}

void DayTraffic::ArriveGreedily() {
  for (int64_t i = 0; i < kGreedyCalls * workers_; ++i) {
    const auto call = NewCall(kGreedy, Priority::kNormal);
    call->prompt = NewTokens(30 + UpTo(60));
    call->max_tokens = UpTo(30);
    Submit(call, kMaxRetries);
  }
}

void DayTraffic::Arrive() {
  const int64_t kind = UpTo(10);
  if (kind <= 3) return BeginConversation();
  const std::shared_ptr<DayCall> call = kind <= 6 ? Hurried() : kind <= 7 ? Document() : PasserBy();
  const auto read = static_cast<int64_t>(call->prompt.size()) - (call->scores ? 1 : 0);
  if (read > 0 && poisonous_ && !IsNight(Hour()) && OneIn(300)) call->prompt[UpTo(read) - 1] = kPoison;
  Disturb(call);
  Submit(call, kMaxRetries);
}

std::shared_ptr<DayCall> DayTraffic::NewCall(std::string client, Priority priority) {
  auto call = std::make_shared<DayCall>();
  call->context.client = std::move(client);
  call->context.priority = priority;
  call->sampling.seed = Random();
  if (OneIn(3)) call->sampling.temperature = 0;
  return call;
}

std::shared_ptr<DayCall> DayTraffic::Hurried() {
  auto call = NewCall(absl::StrCat("hurried-", UpTo(4)), Priority::kHigh);
  call->prompt = NewTokens(UpTo(60));
  call->max_tokens = UpTo(15);
  call->context.deadline = AnyDeadline();
  return call;
}

std::shared_ptr<DayCall> DayTraffic::Document() {
  auto call = NewCall("documents", Priority::kLow);
  call->scores = true;
  call->prompt = NewTokens(OneIn(50) ? 1 : UpTo(250));
  call->context.deadline = clock_.Now() + absl::Hours(1);
  return call;
}

std::shared_ptr<DayCall> DayTraffic::PasserBy() {
  auto call = NewCall(OneIn(4) ? "" : absl::StrCat("passer-by-", ++names_), Priority::kNormal);
  call->prompt = NewTokens(UpTo(OneIn(10) ? 400 : 60));
  call->max_tokens = UpTo(40);
  if (OneIn(4)) call->stop_string = "ab";
  return call;
}

std::shared_ptr<DayCall> DayTraffic::OfRush(size_t client) {
  if (client == kScores) {
    auto call = NewCall("documents of the rush", Priority::kLow);
    call->scores = true;
    call->prompt = NewTokens(100);
    return call;
  }
  auto call = NewCall(absl::StrCat("rush-", client), Priority::kNormal);
  call->prompt = NewTokens(client % 2 == 0 ? 20 : 60);  // those who ask for much and for little, both kinds
  call->max_tokens = 15;
  return call;
}

void DayTraffic::BeginConversation() {
  auto conversation = std::make_shared<Conversation>();
  conversation->client = absl::StrCat("chat-", UpTo(8));
  conversation->id = absl::StrCat("conversation-", ++names_);
  Continue(conversation);
}

void DayTraffic::Continue(const std::shared_ptr<Conversation>& conversation) {
  const bool begins = conversation->history.empty();
  auto call = NewCall(conversation->client, Priority::kNormal);
  call->session = SessionReference{.id = conversation->id, .must_exist = !begins};
  call->history = conversation->history;
  if (begins) call->prompt = SharedBeginning(UpTo(kSharedBeginnings));
  for (const int32_t token : NewTokens(UpTo(25))) call->prompt.push_back(token);
  call->max_tokens = UpTo(25);
  Disturb(call);
  const std::weak_ptr<DayCall> heard = call;
  call->on_end = [this, conversation, heard] { OnTurnEnded(conversation, *heard.lock()); };
  const bool has_ended = !begins && clock_.Now() - conversation->last_use >= service_.sessions_time_to_live();
  const absl::Status status = SendAndCount(call);
  EXPECT_EQ(absl::IsNotFound(status), has_ended) << status;
  if (absl::IsNotFound(status)) {
    ++sessions_.gone;
  } else if (!status.ok()) {
    conversation->last_use = clock_.Now();
    if (begins) return;  // it never was
    timeline_.At(clock_.Now() + absl::Minutes(1), [this, conversation] { Continue(conversation); });
  } else if (OneIn(30)) {
    TryToShare(call);
  }
}

void DayTraffic::TryToShare(const std::shared_ptr<DayCall>& call) {
  const auto other = std::make_shared<DayCall>(*call);
  other->on_end = [] { ADD_FAILURE() << "two calls had one session"; };
  EXPECT_EQ(Send(other, service_, clock_).code(), absl::StatusCode::kAborted);
  ++sessions_.shared;
}

void DayTraffic::OnTurnEnded(const std::shared_ptr<Conversation>& conversation, const DayCall& call) {
  Count(call);
  conversation->last_use = clock_.Now();
  if (call.status.ok()) {
    conversation->history.insert(conversation->history.end(), call.prompt.begin(), call.prompt.end());
    conversation->history.insert(conversation->history.end(), call.tokens.begin(), call.tokens.end());
  } else if (conversation->history.empty()) {
    return;
  }
  if (++conversation->turns == kMaxTurns || OneIn(6)) {
    if (OneIn(2)) return;  // until it ends by itself
    timeline_.At(clock_.Now(), [this, conversation] {
      const absl::Status closed = service_.CloseSession({.client = conversation->client, .id = conversation->id});
      // The last turn's, once the day is over.
      const bool has_ended = clock_.Now() - conversation->last_use >= service_.sessions_time_to_live();
      EXPECT_EQ(closed.code(), has_ended ? absl::StatusCode::kNotFound : absl::StatusCode::kOk) << closed;
      ++(has_ended ? sessions_.gone : sessions_.closed);
    });
    return;
  }
  const absl::Duration mean = OneIn(10) ? absl::Minutes(25) : absl::Minutes(1);
  timeline_.At(clock_.Now() + Exponential(mean), [this, conversation] { Continue(conversation); });
}

void DayTraffic::Disturb(const std::shared_ptr<DayCall>& call) {
  const std::shared_ptr<CancellationFlag> cancelled = call->context.cancelled;
  const std::shared_ptr<PauseFlag> paused = call->context.paused;
  if (OneIn(25)) {  // leaves, whatever became of it
    timeline_.At(clock_.Now() + Exponential(absl::Seconds(2)), [cancelled] { *cancelled = true; });
  } else if (!call->scores && OneIn(25)) {  // takes nothing for a while, and perhaps never again
    const absl::Duration pause = Exponential(absl::Seconds(20));
    const bool comes_back = !OneIn(3);
    call->on_delta = [this, cancelled, paused, pause, comes_back, before = false]() mutable {
      if (std::exchange(before, true)) return;
      *paused = true;
      ++slow_readers_;
      timeline_.At(clock_.Now() + pause, [this, cancelled, paused, comes_back] {
        if (!comes_back) *cancelled = true;
        *paused = false;
        service_.Wake();
      });
    };
  }
}

void DayTraffic::Submit(const std::shared_ptr<DayCall>& call, int64_t retries) {
  const std::weak_ptr<DayCall> heard = call;
  call->on_end = [this, heard] { Count(*heard.lock()); };
  Retry(SendAndCount(call), retries, [this, call](int64_t left) { Submit(call, left); });
}

absl::Status DayTraffic::SendAndCount(const std::shared_ptr<DayCall>& call) {
  absl::Status status = Send(call, service_, clock_);
  if (absl::IsNotFound(status)) return status;
  CountSent(call->context.client, status);
  if (!status.ok()) CheckRefusal(*call, status, clock_.Now());
  return status;
}

void DayTraffic::Count(const DayCall& call) {
  ++ended_;
  ++counts_.ends[call.status.code()];
  CheckEnd(call, model_, vocabulary_, service_.ends_by_force());
  if (const auto waited = call.Waited(); waited.has_value()) CountWait(call.context.priority, *waited);
  if (!AllAskForMore() || !call.status.ok()) return;
  if (call.context.client.rfind("rush-", 0) == 0) counts_.rush_work[Hour()][call.context.client] += call.Work();
}

}  // namespace longshort::core
