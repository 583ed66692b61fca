#include "core/schedule/stream_estimates.h"

#include <algorithm>

namespace longshort {

void StreamEstimates::SetSteps(int worker, const StepCost& cost, int64_t max_streams) {
  estimators_[groups_.Of(worker)].SetSteps(cost, max_streams);
}

void StreamEstimates::Learn(int worker, const StreamTokens& tokens, const StreamTime& time, bool others_wait,
                            absl::Time now) {
  estimators_[groups_.Of(worker)].Learn(tokens, time, others_wait, now);
}

bool StreamEstimates::knows_steps() const {
  return std::any_of(estimators_.begin(), estimators_.end(),
                     [](const StreamEstimator& estimator) { return estimator.knows_steps(); });
}

absl::Duration StreamEstimates::Cost(const StreamTokens& tokens) const { return groups_.Shared(Costs(tokens)); }

absl::Duration StreamEstimates::PartOfAll(int worker, const StreamTokens& tokens, absl::Duration time) const {
  return groups_.PartOfAll(groups_.Of(worker), time, Costs(tokens));
}

std::optional<absl::Duration> StreamEstimates::FastPrefill(int64_t prompt_tokens, absl::Time now) const {
  absl::Duration fastest = absl::InfiniteDuration();
  for (const StreamEstimator& estimator : estimators_) {
    const auto fast = estimator.FastPrefill(prompt_tokens, now);
    if (!fast.has_value()) return std::nullopt;
    fastest = std::min(fastest, *fast);
  }
  return fastest;
}

double StreamEstimates::Load(int worker, int64_t running) const {
  const auto requests = static_cast<double>(running);
  if (groups_.count() == 1) return requests;
  const std::vector<absl::Duration> costs = Costs({.prompt = 1, .generated = 1});
  if (std::find(costs.begin(), costs.end(), absl::ZeroDuration()) != costs.end()) return requests;
  return requests * absl::ToDoubleSeconds(costs[groups_.Of(worker)]);
}

std::vector<absl::Duration> StreamEstimates::Costs(const StreamTokens& tokens) const {
  std::vector<absl::Duration> costs;
  costs.reserve(estimators_.size());
  for (const StreamEstimator& estimator : estimators_) costs.push_back(estimator.Cost(tokens));
  return costs;
}

}  // namespace longshort
