#include "tests/core/classification/classifier_day_traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "gtest/gtest.h"

namespace longshort::core {
namespace {

// About one item a second is what the machine can do.
constexpr double kItemsAtNight = 0.05;
constexpr double kItemsByDay = 0.4;

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

constexpr std::array<int, 3> kGreedyItemHours = {8, 13, 17};
constexpr int64_t kGreedyItems = 60;
constexpr char kJob[] = "job";

// What is predicted of items is no further off. Images that are not prepared are taken to be like the others, and the
// largest take four times as long as the smallest.
constexpr double kEstimatesAreWithin = 4;
// Once an engine has run some: its first runs say little of other shapes.
constexpr absl::Duration kLearns = absl::Minutes(10);

double ItemsPerSecond(double hours) {
  if (hours < 6 || hours >= 22) return kItemsAtNight;
  const double edge = std::min({1.0, hours - 6, (22 - hours) / 2});
  return kItemsAtNight + (kItemsByDay - kItemsAtNight) * edge;
}

}  // namespace

absl::Duration ClassifierDayTraffic::Exponential(absl::Duration mean) {
  const double part = (static_cast<double>(random_()) + 1) / 4294967296.0;
  return absl::Trunc(mean * -std::log(part), absl::Microseconds(1));
}

int ClassifierDayTraffic::Hour() const {
  const auto hour = static_cast<int>(absl::FDivDuration(clock_.Now() - begin_, absl::Hours(1)));
  return std::min(ItemCounts::kHours - 1, hour);
}

bool ClassifierDayTraffic::InRush() const {
  return IsRushHour(Hour()) && InHour() >= kRushBegin && InHour() < kRushEnd;
}

void ClassifierDayTraffic::Begin() {
  begin_ = clock_.Now();
  ScheduleArrival();
  for (const int hour : kRushHours) {
    for (size_t client = 0; client < kRush.size(); ++client) {
      const absl::Time full_hour = begin_ + absl::Hours(hour);
      timeline_.At(full_hour + kRushBegin, [this, client, end = full_hour + kRushEnd] { ScheduleRush(client, end); });
    }
  }
  for (const int hour : kGreedyItemHours) {
    timeline_.At(begin_ + absl::Hours(hour) + absl::Minutes(5),
                 [this] { Submit(NewItems(kGreedy, Priority::kNormal, kGreedyItems), kMaxRetries); });
  }
}

void ClassifierDayTraffic::ScheduleArrival() {
  if (clock_.Now() >= begin_ + absl::Hours(ItemCounts::kHours)) return;
  constexpr double kItemsOfACall = 2;
  const double rate = ItemsPerSecond(absl::FDivDuration(clock_.Now() - begin_, absl::Hours(1))) / kItemsOfACall;
  const absl::Duration gap = Exponential(absl::Seconds(1 / rate));
  // The rate changes with the hour: who would come later is drawn again then.
  const bool comes = gap < absl::Minutes(1);
  timeline_.At(clock_.Now() + std::min(gap, absl::Minutes(1)), [this, comes] {
    if (comes && !calm_ && (!InRush() || OneIn(4))) Arrive();
    ScheduleArrival();
  });
}

void ClassifierDayTraffic::ScheduleRush(size_t client, absl::Time end) {
  if (clock_.Now() >= end) return;
  timeline_.At(clock_.Now() + Exponential(absl::Seconds(1 / kRush[client].per_second)), [this, client, end] {
    const Items items = NewItems(kRush[client].name, kRush[client].priority, 1);
    items[0]->poisonous = client == kPoisoner && OneIn(5);
    Submit(items, 0);
    ScheduleRush(client, end);
  });
}

void ClassifierDayTraffic::Arrive() {
  const int64_t kind = UpTo(20);
  Items items;
  if (kind <= 10) {
    items = NewItems(OneIn(4) ? "" : absl::StrCat("passer-by-", ids_), Priority::kNormal, UpTo(3));
  } else if (kind <= 19) {
    items = NewItems(absl::StrCat("hurried-", UpTo(4)), Priority::kHigh, 1);
    // From a millisecond to an hour, each power of ten as likely as the other.
    const double exponent = -3 + 6.556 * static_cast<double>(UpTo(1000)) / 1000;
    items[0]->context.deadline = clock_.Now() + absl::Seconds(std::pow(10, exponent));
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
    const auto refusal = GetRefusal(SendAndCheck(call, work_until_prepared));
    if (retries == 0 || !refusal.has_value()) continue;
    timeline_.At(clock_.Now() + refusal->retry_after, [this, call, retries] {
      ++counts_.retried;
      Submit({call}, retries - 1);
    });
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
  ++counts_.sent;
  ++counts_.sent_in_hour[Hour()];
  if (status.ok()) {
    CheckAdmission(*call, of_client);
    outstanding_.insert(call);
  } else if (absl::IsDeadlineExceeded(status)) {
    EXPECT_FALSE(idle) << "a worker sleeps, and might have tried";
    CheckTooLate(*call, clock_.Now());
    ++counts_.too_late;
  } else {
    CheckRefusal(*call, status, all, of_client);
    ++counts_.refused;
    if (call->context.client != kGreedy && call->context.client != kJob) ++counts_.refused_in_hour[Hour()];
  }
  HearEnds();
  return status;
}

bool ClassifierDayTraffic::HasLearned() const {
  return clock_.Now() - std::max(begin_, machine_.last_forced_end()) > kLearns;
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
  ++counts_.failures[call.failures];
  const int hour = Hour();
  const auto priority = static_cast<size_t>(call.context.priority);
  const absl::Duration run = call.scores.ok() ? call.scores->timings.run : absl::ZeroDuration();
  const absl::Duration wait = (call.ended_at - run - call.submitted) / std::max<int64_t>(1, call.tries);
  counts_.longest_wait[priority] = std::max(counts_.longest_wait[priority], wait);
  if (!IsRushHour(hour) && !IsGreedyHour(hour) && InHour() < kFirstStall) {
    counts_.longest_wait_in_calm[priority] = std::max(counts_.longest_wait_in_calm[priority], wait);
  }
  if (!InRush() || InHour() < kRushBegin + kLinesFill) return;
  counts_.rush_work_of_priority[hour][priority] += call.worker_time;
  if (call.context.client.rfind("rush-", 0) == 0 && call.context.priority == Priority::kNormal) {
    counts_.rush_work[hour][call.context.client] += call.worker_time;
  }
}

}  // namespace longshort::core
