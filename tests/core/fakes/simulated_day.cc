#include "tests/core/fakes/simulated_day.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "core/schedule/work_order.h"
#include "gtest/gtest.h"

namespace longshort::core {

std::string DayCounts::Describe(const std::string& calls) const {
  std::string text = absl::StrCat(calls, " ", sent, ", refused for lack of room ", refused, " and of time ", too_late,
                                  ", retried ", retried, "; ends:");
  for (const auto& [code, count] : ends) absl::StrAppend(&text, " ", absl::StatusCodeToString(code), " ", count);
  absl::StrAppend(&text, "; longest waits (low, normal, high)");
  for (const absl::Duration wait : longest_wait) absl::StrAppend(&text, " ", absl::FormatDuration(wait));
  return text;
}

void DayClients::Begin(int begin_hour) {
  begin_ = clock_.Now() - absl::Hours(begin_hour);
  ScheduleArrival();
  for (const int hour : kRushHours) {
    if (hour < begin_hour) continue;
    for (size_t client = 0; client < rates_.rush.size(); ++client) {
      const absl::Time full_hour = begin_ + absl::Hours(hour);
      timeline_.At(full_hour + kRushBegin, [this, client, end = full_hour + kRushEnd] { ScheduleRush(client, end); });
    }
  }
  for (const int hour : rates_.greedy_hours) {
    if (hour < begin_hour) continue;
    timeline_.At(begin_ + absl::Hours(hour) + absl::Minutes(5), [this] { ArriveGreedily(); });
  }
}

absl::Duration DayClients::Exponential(absl::Duration mean) {
  const double part = (static_cast<double>(random_()) + 1) / 4294967296.0;
  return absl::Trunc(mean * -std::log(part), absl::Microseconds(1));
}

absl::Time DayClients::AnyDeadline() {
  const double exponent = -3 + 6.556 * static_cast<double>(UpTo(1000)) / 1000;
  return clock_.Now() + absl::Seconds(std::pow(10, exponent));
}

int DayClients::Hour() const {
  return std::min<int>(kHours - 1, static_cast<int>(absl::FDivDuration(clock_.Now() - begin_, absl::Hours(1))));
}

bool DayClients::InRush() const { return IsRushHour(Hour()) && InHour() >= kRushBegin && InHour() < kRushEnd; }

void DayClients::ScheduleArrival() {
  const double hours = absl::FDivDuration(clock_.Now() - begin_, absl::Hours(1));
  if (hours >= kHours) return;
  const double edge = IsNight(static_cast<int>(hours)) ? 0 : std::min({1.0, hours - 6, (22 - hours) / 2});
  const double rate = rates_.at_night + (rates_.by_day - rates_.at_night) * edge;
  const absl::Duration gap = Exponential(absl::Seconds(1 / rate));
  // The rate changes with the hour: who would come later is drawn again then.
  const bool comes = gap < absl::Minutes(1);
  timeline_.At(clock_.Now() + std::min(gap, absl::Minutes(1)), [this, comes] {
    if (comes && !calm_) Arrive();
    ScheduleArrival();
  });
}

void DayClients::ScheduleRush(size_t client, absl::Time end) {
  if (clock_.Now() >= end) return;
  timeline_.At(clock_.Now() + Exponential(absl::Seconds(1 / rates_.rush[client])), [this, client, end] {
    ArriveInRush(client);
    ScheduleRush(client, end);
  });
}

void DayClients::CountSent(const std::string& client, const absl::Status& status) {
  ++counts_.sent;
  ++counts_.sent_in_hour[Hour()];
  if (status.ok()) return;
  if (absl::IsDeadlineExceeded(status)) {
    ++counts_.too_late;
    return;
  }
  ++counts_.refused;
  if (client != kGreedy && client != kJob) ++counts_.refused_in_hour[Hour()];
}

void DayClients::CountWait(Priority priority, absl::Duration wait) {
  absl::Duration& longest = counts_.longest_wait[static_cast<size_t>(priority)];
  longest = std::max(longest, wait);
}

void DayClients::Retry(const absl::Status& status, int64_t retries, std::function<void(int64_t)> again) {
  const auto refusal = GetRefusal(status);
  if (retries == 0 || !refusal.has_value()) return;
  timeline_.At(clock_.Now() + refusal->retry_after, [this, retries, again = std::move(again)] {
    ++counts_.retried;
    again(retries - 1);
  });
}

void SimulatedDay::Run(int begin, int end) {
  const absl::Time midnight = clock_.Now() - absl::Hours(begin);
  clients().Begin(begin);
  for (int hour = begin; hour < end; ++hour) {
    const absl::Time full_hour = midnight + absl::Hours(hour);
    ScheduleTroubles(hour, full_hour);
    RunUntil(full_hour + absl::Minutes(58));
    clients().SetCalm(true);
    RunUntil(full_hour + absl::Hours(1));
    RunUntilIdle();
    CheckNothingIsLeft();
    clients().SetCalm(false);
    if (hour == begin) heap_at_first_ = HeapBytes();
    if (::testing::Test::HasFatalFailure()) return;
  }
  heap_at_last_ = HeapBytes();
}

void SimulatedDay::RunUntil(absl::Time end) {
  while (clock_.Now() < end && !::testing::Test::HasFatalFailure()) RunRound(end);
}

void SimulatedDay::RunUntilIdle() {
  const absl::Time latest = clock_.Now() + absl::Minutes(10);
  while (busy() && !::testing::Test::HasFatalFailure()) {
    ASSERT_LT(clock_.Now(), latest) << "the line does not get shorter";
    RunRound(latest);
  }
}

absl::Duration LongestWait(Priority priority, absl::Duration max_queued, absl::Duration stall) {
  const PriorityRounds::Options rounds;
  const int64_t all = std::accumulate(rounds.weights.begin(), rounds.weights.end(), int64_t{0});
  return max_queued * all / rounds.weights[static_cast<size_t>(priority)] + stall;
}

void CheckDay(const SimulatedDay& day, const DayCounts& counts, int begin, int end, double even, double refused) {
  for (int hour = begin; hour < end; ++hour) {
    if (IsNight(hour) || (hour > 0 && IsRushHour(hour - 1))) {
      EXPECT_LE(counts.refused_in_hour[hour], refused * static_cast<double>(counts.sent_in_hour[hour])) << hour;
    }
    if (!IsRushHour(hour)) continue;
    EXPECT_GT(counts.refused_in_hour[hour], 100) << "at " << hour;
    const std::map<std::string, absl::Duration>& work = counts.rush_work.at(hour);
    ASSERT_EQ(work.size(), 4u);
    const auto [min, max] =
        std::minmax_element(work.begin(), work.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(max->second, even * min->second) << max->first << " and " << min->first << " at " << hour;
  }
  // Names of clients, ended sessions, answered calls: a list that only grows would have one of these for each call.
  // What lives at noon, where the shorter days end, differs from what lived before by tens of KiB.
  constexpr int64_t kOfTheMoment = 64 << 10;
  EXPECT_LT(day.heap_growth(), kOfTheMoment + 4 * counts.sent);
  for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kCancelled, absl::StatusCode::kInternal,
                                      absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable}) {
    EXPECT_GT(counts.ends.count(code), 0u) << absl::StatusCodeToString(code) << " never came to pass";
  }
  EXPECT_GT(counts.retried, 10);
}

}  // namespace longshort::core
