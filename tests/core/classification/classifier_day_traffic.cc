#include "tests/core/classification/classifier_day_traffic.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "gtest/gtest.h"

namespace longshort::core {
namespace {

// About one item a second is what the machine can do. A call has two.
constexpr double kCallsAtNight = 0.05 / 2;
constexpr double kCallsByDay = 0.4 / 2;

struct RushClient {
  const char* name;
  Priority priority;
  double per_second;
};
constexpr std::array<RushClient, 6> kRush = {{{"rush-0", Priority::kNormal, 0.2},
                                              {"rush-1", Priority::kNormal, 0.2},
                                              {"rush-2", Priority::kNormal, 0.4},
                                              {"rush-3", Priority::kNormal, 0.8},
                                              {"rush-high", Priority::kHigh, 2},
                                              {"rush-low", Priority::kLow, 0.25}}};
// Whose items are poisonous now and then.
constexpr size_t kPoisoner = 1;

constexpr std::array<int, 3> kGreedyHours = {8, 13, 17};
constexpr int64_t kGreedyItems = 60;

// What is predicted of items is no further off. Images that are not prepared are taken to be like the others, and the
// largest take four times as long as the smallest.
constexpr double kEstimatesAreWithin = 4;
// Once an engine has run some: its first runs say little of other shapes.
constexpr absl::Duration kLearns = absl::Minutes(10);

std::vector<double> RushRates() {
  std::vector<double> rates;
  for (const RushClient& client : kRush) rates.push_back(client.per_second);
  return rates;
}

}  // namespace

ClassifierDayTraffic::ClassifierDayTraffic(DayItems items, uint32_t seed, Timeline& timeline, const Clock& clock,
                                           ClassifierDayMachine& machine, const DynamicBatchingEngine::Options& options)
    : DayClients(seed,
                 {.at_night = kCallsAtNight,
                  .by_day = kCallsByDay,
                  .rush = RushRates(),
                  .greedy_hours = {kGreedyHours.begin(), kGreedyHours.end()}},
                 timeline, clock),
      items_(items),
      machine_(machine),
      options_(options) {}

void ClassifierDayTraffic::ArriveInRush(size_t client) {
  const Items items = NewItems(kRush[client].name, kRush[client].priority, 1);
  items[0]->poisonous = client == kPoisoner && OneIn(5);
  Submit(items, 0);
}

void ClassifierDayTraffic::ArriveGreedily() { Submit(NewItems(kGreedy, Priority::kNormal, kGreedyItems), kMaxRetries); }

void ClassifierDayTraffic::Arrive() {
  if (InRush() && !OneIn(4)) return;
  const int64_t kind = UpTo(20);
  Items items;
  if (kind <= 10) {
    items = NewItems(OneIn(4) ? "" : absl::StrCat("passer-by-", ids_), Priority::kNormal, UpTo(3));
  } else if (kind <= 19) {
    items = NewItems(absl::StrCat("hurried-", UpTo(4)), Priority::kHigh, 1);
    items[0]->context.deadline = AnyDeadline();
  } else {
    items = NewItems(kJob, Priority::kLow, 4 + UpTo(12));
    for (const auto& item : items) item->context.deadline = clock_.Now() + absl::Hours(1);
  }
  for (const auto& item : items) item->poisonous = !IsNight(Hour()) && OneIn(300);
  if (OneIn(25)) {  // leaves, whatever became of it
    timeline_.At(clock_.Now() + Exponential(absl::Seconds(1)),
                 [cancelled = items[0]->context.cancelled] { *cancelled = true; });
  }
  Submit(items, kMaxRetries);
}

ClassifierDayTraffic::Items ClassifierDayTraffic::NewItems(const std::string& client, Priority priority,
                                                           int64_t count) {
  RequestContext context;
  context.client = client;
  context.priority = priority;
  Items items;
  for (int64_t i = 0; i < count; ++i) {
    const auto& item = items.emplace_back(std::make_shared<ItemCall>());
    item->id = ++ids_;
    item->context = context;
    if (items_ == DayItems::kDocuments) {
      item->units = UpTo(OneIn(20) ? 300 : 100);
    } else {
      item->units = 20 * (int64_t{1} << UpTo(3) >> 1);
      item->preparation = absl::Milliseconds(4) * item->units;
      item->broken = OneIn(100);
    }
  }
  return items;
}

void ClassifierDayTraffic::Submit(const Items& items, int64_t retries) {
  absl::Duration work_until_prepared;
  for (const std::shared_ptr<ItemCall>& call : items) {
    work_until_prepared += call->preparation;
    Retry(SendAndCheck(call, work_until_prepared), retries, [this, call](int64_t left) { Submit({call}, left); });
  }
}

void ClassifierDayTraffic::Probe() {
  const std::shared_ptr<ItemCall> call = NewItems("probe", Priority::kHigh, 1).front();
  ++counts_.sent;
  if (machine_.Send(call, call->preparation).ok()) {
    outstanding_.insert(call);
  } else {
    ++counts_.refused;
  }
  HearEnds();
}

absl::Status ClassifierDayTraffic::SendAndCheck(const std::shared_ptr<ItemCall>& call,
                                                absl::Duration work_until_prepared) {
  // A worker sleeps in real time, so it may wake by itself and end items that have become too late. It removes them
  // from the queue first, and then notifies their listeners.
  for (int look = 0; look < 100 && WaitingOf(nullptr).items != machine_.state().waiting_items; ++look) {
    machine_.Settle();
    HearEnds();
  }
  const Waiting all = WaitingOf(nullptr), of_client = WaitingOf(&call->context.client);
  EXPECT_EQ(all.items, machine_.state().waiting_items);
  const bool idle = machine_.has_idle_worker() && all.items == 0;
  absl::Status status = machine_.Send(call, work_until_prepared);
  // A worker notifies the listeners of its batch first, and then the queue that it is idle.
  const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (idle && absl::IsDeadlineExceeded(status) && std::chrono::steady_clock::now() < latest) {
    std::this_thread::yield();
    status = machine_.Send(call, work_until_prepared);
  }
  CountSent(call->context.client, status);
  if (status.ok()) {
    CheckAdmission(*call, of_client);
    outstanding_.insert(call);
  } else if (absl::IsDeadlineExceeded(status)) {
    EXPECT_FALSE(idle) << "a worker sleeps, and might have tried";
    CheckTooLate(*call, clock_.Now());
  } else {
    CheckRefusal(*call, status, all, of_client);
  }
  HearEnds();
  return status;
}

bool ClassifierDayTraffic::HasLearned() const {
  return clock_.Now() - std::max(begin(), machine_.last_forced_end()) > kLearns;
}

ClassifierDayTraffic::Waiting ClassifierDayTraffic::WaitingOf(const std::string* client) const {
  Waiting waiting;
  for (const auto& call : outstanding_) {
    if (call->in_batch || (client != nullptr && call->context.client != *client)) continue;
    ++waiting.items;
    waiting.min += call->Run() / options_.workers.size();
    waiting.max += (kFixedRun + call->Run()) / options_.workers.size();
  }
  return waiting;
}

void ClassifierDayTraffic::CheckAdmission(const ItemCall& call, const Waiting& of_client) {
  const WaitingLimits& limits = options_.items.limits;
  EXPECT_LT(of_client.items, limits.max_queued);
  EXPECT_LT(of_client.items, limits.max_queued_per_client);
  if (!HasLearned()) return;
  const absl::Duration more = call.Run() / options_.workers.size();
  if (of_client.items > 0) {
    EXPECT_LE(of_client.min + more, kEstimatesAreWithin * limits.max_queued_cost);
    EXPECT_LE(of_client.min + more, kEstimatesAreWithin * limits.max_queued_cost_per_client);
  }
}

void ClassifierDayTraffic::CheckRefusal(const ItemCall& call, const absl::Status& refusal, const Waiting& all,
                                        const Waiting& of_client) {
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted) << refusal;
  const auto details = GetRefusal(refusal);
  ASSERT_TRUE(details.has_value()) << refusal;
  EXPECT_EQ(details->queue_depth, all.items);
  EXPECT_GT(all.items, 0);
  if (!HasLearned()) return;
  EXPECT_GE(details->retry_after, std::max(kMinRetryDelay, of_client.min / kEstimatesAreWithin));
  EXPECT_LE(details->retry_after, std::max(kMinRetryDelay, all.max * kEstimatesAreWithin));
  const WaitingLimits& limits = options_.items.limits;
  const absl::Duration more = (kFixedRun + call.Run()) / options_.workers.size();
  EXPECT_TRUE(all.items >= limits.max_queued || of_client.items >= limits.max_queued_per_client ||
              kEstimatesAreWithin * (all.max + more) > limits.max_queued_cost ||
              kEstimatesAreWithin * (of_client.max + more) > limits.max_queued_cost_per_client)
      << refusal;
}

// It could not have been done in twice the time that remains: the estimate is optimistic, and those of half or twice as
// many units share one.
void ClassifierDayTraffic::CheckTooLate(const ItemCall& call, absl::Time now) const {
  EXPECT_LE(call.context.deadline - now, 2 * (kFixedRun + call.Run())) << "refused though there was enough time";
}

void ClassifierDayTraffic::HearEnds() {
  for (const auto& call : machine_.TakeEnded()) {
    EXPECT_EQ(outstanding_.erase(call), 1u);
    CheckEnd(*call);
    Count(*call);
  }
}

void ClassifierDayTraffic::CheckEnd(const ItemCall& call) const {
  switch (call.scores.status().code()) {
    case absl::StatusCode::kOk: {
      const ClassificationTimings& timings = call.scores->timings;
      EXPECT_EQ(call.scores->row, FakeClassifier::LogitsOf(call.Item()));
      EXPECT_EQ(timings.preparation + timings.queue + timings.run, call.ended_at - call.submitted);
      EXPECT_LT(call.ended_at - timings.run, call.context.deadline);
      EXPECT_FALSE(call.poisonous || call.broken);
      EXPECT_EQ(call.failures, call.tries - 1);
      break;
    }
    case absl::StatusCode::kCancelled:
      EXPECT_TRUE(call.context.cancelled->load());
      break;
    case absl::StatusCode::kDeadlineExceeded:
      if (call.ended_at < call.context.deadline) CheckTooLate(call, call.ended_at);
      break;
    case absl::StatusCode::kUnavailable:
      EXPECT_EQ(call.ended_at, machine_.last_forced_end());
      break;
    case absl::StatusCode::kInternal:
      EXPECT_TRUE(call.poisonous);
      EXPECT_EQ(call.failures, kMaxTries);
      break;
    case absl::StatusCode::kInvalidArgument:
      EXPECT_TRUE(call.broken);
      break;
    default:
      ADD_FAILURE() << call.scores.status();
  }
}

void ClassifierDayTraffic::Count(const ItemCall& call) {
  ++counts_.ends[call.scores.status().code()];
  ++item_counts_.failures[call.failures];
  const int hour = Hour();
  const auto priority = static_cast<size_t>(call.context.priority);
  const absl::Duration run = call.scores.ok() ? call.scores->timings.run : absl::ZeroDuration();
  const absl::Duration wait = (call.ended_at - run - call.submitted) / std::max<int64_t>(1, call.tries);
  CountWait(call.context.priority, wait);
  const bool is_greedy_hour = std::count(kGreedyHours.begin(), kGreedyHours.end(), hour) > 0;
  if (!IsRushHour(hour) && !is_greedy_hour && InHour() < kFirstStall) {
    absl::Duration& longest = item_counts_.longest_wait_in_calm[priority];
    longest = std::max(longest, wait);
  }
  if (!AllAskForMore()) return;
  item_counts_.rush_work_of_priority[hour][priority] += call.worker_time;
  if (call.context.client.rfind("rush-", 0) == 0 && call.context.priority == Priority::kNormal) {
    counts_.rush_work[hour][call.context.client] += call.worker_time;
  }
}

}  // namespace longshort::core
