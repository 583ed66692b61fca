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

Timeline MakeTimeline(absl::Span<const CallOutcome> outcomes, const Window& window) {
  const absl::Duration length = window.end - window.begin;
  Timeline timeline;
  timeline.slice = std::max(kMinSlice, length / kMaxSlices);
  const auto slices = static_cast<size_t>(std::max(1.0, std::ceil(absl::FDivDuration(length, timeline.slice))));
  timeline.answered.resize(slices);
  timeline.refused_or_failed.resize(slices);
  timeline.tokens.resize(slices);
  std::vector<std::vector<absl::Duration>> total(slices), first_token(slices);
  const auto slice_of = [&](absl::Duration time) {
    return std::min(static_cast<size_t>(absl::FDivDuration(time - window.begin, timeline.slice)), slices - 1);
  };
  for (const CallOutcome& outcome : outcomes) {
    for (const TokenArrival& arrival : outcome.arrivals) {
      if (window.Holds(arrival.at)) timeline.tokens[slice_of(arrival.at)] += arrival.tokens;
    }
    if (!outcome.arrivals.empty() && window.Holds(outcome.arrivals.front().at)) {
      const absl::Duration first = outcome.arrivals.front().at;
      first_token[slice_of(first)].push_back(first - outcome.planned);
    }
    if (outcome.cut_off || !window.Holds(outcome.ended)) continue;
    const size_t slice = slice_of(outcome.ended);
    if (outcome.code == grpc::StatusCode::OK) {
      ++timeline.answered[slice];
      total[slice].push_back(outcome.ended - outcome.planned);
    } else {
      ++timeline.refused_or_failed[slice];
    }
  }
  timeline.total = std::vector<Distribution>(total.begin(), total.end());
  timeline.first_token = std::vector<Distribution>(first_token.begin(), first_token.end());
  return timeline;
}

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

}  // namespace

bool Meets(const CallOutcome& outcome, const ServiceObjective& objective) {
  if (outcome.code != grpc::StatusCode::OK) return false;
  const absl::Duration first = outcome.arrivals.empty() ? outcome.ended : outcome.arrivals.front().at;
  if (first - outcome.planned > objective.first_token) return false;
  return outcome.ended - outcome.planned <= objective.total;
}

Summary Summarise(absl::Span<const CallOutcome> outcomes, absl::Duration begin, absl::Duration end,
                  const ServiceObjective& objective) {
  const Window window = {begin, std::max(begin, end)};
  Summary summary;
  summary.measured = window.end - window.begin;
  summary.timeline = MakeTimeline(outcomes, window);

  std::map<grpc::StatusCode, std::vector<absl::Duration>> total;
  std::vector<absl::Duration> first_token, inter_token, send_delay;
  int64_t good = 0;
  for (const CallOutcome& outcome : outcomes) {
    const bool meets = Meets(outcome, objective);
    if (meets && window.Holds(outcome.ended)) ++good;
    for (size_t i = 1; i < outcome.arrivals.size(); ++i) {
      const absl::Duration at = outcome.arrivals[i].at;
      if (window.Holds(at)) inter_token.push_back(at - outcome.arrivals[i - 1].at);
    }
    if (!window.Holds(outcome.planned)) continue;
    Count(outcome, summary);
    if (meets) ++summary.within_objective;
    send_delay.push_back(outcome.sent - outcome.planned);
    if (!outcome.arrivals.empty()) first_token.push_back(outcome.arrivals.front().at - outcome.planned);
    if (!outcome.cut_off) total[outcome.code].push_back(outcome.ended - outcome.planned);
  }
  for (auto& [code, durations] : total) summary.total[code] = Distribution(std::move(durations));
  summary.first_token = Distribution(std::move(first_token));
  summary.inter_token = Distribution(std::move(inter_token));
  summary.send_delay = Distribution(std::move(send_delay));

  const double seconds = absl::ToDoubleSeconds(summary.measured);
  if (seconds <= 0) return summary;
  const auto rate = [seconds](const std::vector<int64_t>& slices) {
    return static_cast<double>(std::accumulate(slices.begin(), slices.end(), int64_t{0})) / seconds;
  };
  summary.answers_per_second = rate(summary.timeline.answered);
  summary.tokens_per_second = rate(summary.timeline.tokens);
  summary.goodput_per_second = static_cast<double>(good) / seconds;
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
