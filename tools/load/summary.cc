#include "tools/load/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace longshort::load {
namespace {

// A timeline has enough slices for a plot, each of at least a second.
constexpr int64_t kMaxSlices = 120;
constexpr absl::Duration kMinSlice = absl::Seconds(1);

struct Window {
  absl::Duration begin;
  absl::Duration end;

  bool Holds(absl::Duration time) const { return time >= begin && time < end; }
};

// The durations collected for each slice.
using SlicedDurations = std::vector<std::vector<absl::Duration>>;

std::vector<Distribution> DistributionsOf(SlicedDurations& slices) {
  std::vector<Distribution> distributions;
  for (std::vector<absl::Duration>& durations : slices) distributions.emplace_back(std::move(durations));
  return distributions;
}

class TimelineMaker final {
 public:
  explicit TimelineMaker(const Window& window)
      : window_(window),
        slice_(std::max(kMinSlice, (window.end - window.begin) / kMaxSlices)),
        slices_(static_cast<size_t>(
            std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(
                                     (window.end - window.begin) / absl::ToDoubleSeconds(slice_), absl::Seconds(1)))))),
        total_(slices_),
        first_token_(slices_) {
    timeline_.slice = slice_;
    timeline_.answered.resize(slices_);
    timeline_.refused_or_failed.resize(slices_);
    timeline_.tokens.resize(slices_);
  }

  void Add(const CallOutcome& outcome) {
    for (const TokenArrival& arrival : outcome.arrivals) {
      if (window_.Holds(arrival.at)) timeline_.tokens[SliceOf(arrival.at)] += arrival.tokens;
    }
    if (!outcome.arrivals.empty() && window_.Holds(outcome.arrivals.front().at)) {
      const absl::Duration first = outcome.arrivals.front().at;
      first_token_[SliceOf(first)].push_back(first - outcome.planned);
    }
    if (outcome.cut_off || !window_.Holds(outcome.ended)) return;
    const size_t slice = SliceOf(outcome.ended);
    if (outcome.code == grpc::StatusCode::OK) {
      ++timeline_.answered[slice];
      total_[slice].push_back(outcome.ended - outcome.planned);
    } else {
      ++timeline_.refused_or_failed[slice];
    }
  }

  Timeline Finish() {
    timeline_.total = DistributionsOf(total_);
    timeline_.first_token = DistributionsOf(first_token_);
    return std::move(timeline_);
  }

 private:
  size_t SliceOf(absl::Duration time) const {
    const auto slice = static_cast<size_t>(absl::FDivDuration(time - window_.begin, slice_));
    return std::min(slice, slices_ - 1);
  }

  const Window window_;
  const absl::Duration slice_;
  const size_t slices_;
  Timeline timeline_;
  SlicedDurations total_;
  SlicedDurations first_token_;
};

void Count(const CallOutcome& outcome, Summary& summary) {
  ++summary.sent;
  if (outcome.cut_off) {
    ++summary.cut_off;
  } else if (outcome.code == grpc::StatusCode::OK) {
    ++summary.answered;
  } else if (outcome.code == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    ++summary.refused;
  } else {
    if (summary.failed == 0) summary.first_failure = outcome.error;
    ++summary.failed;
  }
}

// Sets the rates of answers, tokens and answers within the objective that arrived within the window.
void CountRates(absl::Span<const CallOutcome> outcomes, const Window& window, const ServiceObjective& objective,
                Summary& summary) {
  int64_t answers = 0;
  int64_t good = 0;
  int64_t tokens = 0;
  for (const CallOutcome& outcome : outcomes) {
    for (const TokenArrival& arrival : outcome.arrivals) tokens += window.Holds(arrival.at) ? arrival.tokens : 0;
    if (outcome.code != grpc::StatusCode::OK || !window.Holds(outcome.ended)) continue;
    ++answers;
    if (Meets(outcome, objective)) ++good;
  }
  const double seconds = absl::ToDoubleSeconds(window.end - window.begin);
  if (seconds <= 0) return;
  summary.answers_per_second = static_cast<double>(answers) / seconds;
  summary.goodput_per_second = static_cast<double>(good) / seconds;
  summary.tokens_per_second = static_cast<double>(tokens) / seconds;
}

Distribution InterToken(absl::Span<const CallOutcome> outcomes, const Window& window) {
  std::vector<absl::Duration> gaps;
  for (const CallOutcome& outcome : outcomes) {
    for (size_t i = 1; i < outcome.arrivals.size(); ++i) {
      const absl::Duration at = outcome.arrivals[i].at;
      if (window.Holds(at)) gaps.push_back(at - outcome.arrivals[i - 1].at);
    }
  }
  return Distribution(std::move(gaps));
}

}  // namespace

bool Meets(const CallOutcome& outcome, const ServiceObjective& objective) {
  if (outcome.code != grpc::StatusCode::OK) return false;
  const absl::Duration first = outcome.arrivals.empty() ? outcome.ended : outcome.arrivals.front().at;
  if (first - outcome.planned > objective.first_token) return false;
  if (outcome.ended - outcome.planned > objective.total) return false;
  if (outcome.arrivals.empty()) return true;
  const int64_t later_tokens = outcome.tokens() - outcome.arrivals.front().tokens;
  return later_tokens == 0 || (outcome.arrivals.back().at - first) / later_tokens <= objective.token;
}

Summary Summarise(absl::Span<const CallOutcome> outcomes, absl::Duration begin, absl::Duration end,
                  const ServiceObjective& objective) {
  const Window window = {begin, std::max(begin, end)};
  Summary summary;
  summary.measured = window.end - window.begin;
  CountRates(outcomes, window, objective, summary);
  summary.inter_token = InterToken(outcomes, window);

  std::map<grpc::StatusCode, std::vector<absl::Duration>> total;
  std::vector<absl::Duration> first_token;
  std::vector<absl::Duration> send_delay;
  TimelineMaker timeline(window);
  for (const CallOutcome& outcome : outcomes) {
    timeline.Add(outcome);
    if (!window.Holds(outcome.planned)) continue;
    Count(outcome, summary);
    if (Meets(outcome, objective)) ++summary.within_objective;
    send_delay.push_back(outcome.sent - outcome.planned);
    if (!outcome.arrivals.empty()) first_token.push_back(outcome.arrivals.front().at - outcome.planned);
    if (!outcome.cut_off) total[outcome.code].push_back(outcome.ended - outcome.planned);
  }
  for (auto& [code, durations] : total) summary.total[code] = Distribution(std::move(durations));
  summary.first_token = Distribution(std::move(first_token));
  summary.send_delay = Distribution(std::move(send_delay));
  summary.timeline = timeline.Finish();
  return summary;
}

Distribution::Distribution(std::vector<absl::Duration> samples) : sorted_(std::move(samples)) {
  std::sort(sorted_.begin(), sorted_.end());
}

absl::Duration Distribution::Mean() const {
  if (sorted_.empty()) return absl::ZeroDuration();
  return std::accumulate(sorted_.begin(), sorted_.end(), absl::ZeroDuration()) / count();
}

absl::Duration Distribution::Percentile(double percent) const {
  if (sorted_.empty()) return absl::ZeroDuration();
  const auto rank = static_cast<int64_t>(std::ceil(percent * static_cast<double>(count()) / 100));
  return sorted_[static_cast<size_t>(std::clamp<int64_t>(rank, 1, count()) - 1)];
}

}  // namespace longshort::load
