#include "core/schedule/stream_estimator.h"

#include <algorithm>

namespace longshort::core {

void StreamEstimator::SetSteps(const StepCost& cost, int64_t max_streams) {
  if (cost.reliable() || !step_cost_.reliable()) step_cost_ = cost;
  max_streams_ = max_streams;
}

void StreamEstimator::Learn(const StreamTokens& tokens, const StreamTime& time, bool others_wait, absl::Time now) {
  if (!step_cost_.known() || tokens.prompt < 1) return;
  // The time of a prompt that is read alone, in a step of its own.
  const absl::Duration max = step_cost_.fixed() + CostOfPrompt(tokens.prompt);
  prefill_fractions_.Add(absl::FDivDuration(time.prefill, max), now);
  const double fraction = absl::FDivDuration(time.all, CostOfAll(tokens));
  // A request that ran alone did not share its steps, so its time does not apply to shared ones. While requests wait,
  // steps are shared by as many as possible, and will be for the waiting ones.
  fractions_.Add(others_wait ? fraction : std::min(1.0, fraction), now);
}

absl::Duration StreamEstimator::Cost(const StreamTokens& tokens) const {
  if (!knows_steps()) return absl::ZeroDuration();
  return CostOfAll(tokens) * (fractions_.empty() ? 1.0 : fractions_.Median());
}

absl::Duration StreamEstimator::PrefillCost(const StreamTokens& tokens) const {
  if (!knows_steps()) return absl::ZeroDuration();
  return CostOfPrompt(tokens.prompt) * (prefill_fractions_.empty() ? 1.0 : std::min(1.0, prefill_fractions_.Median()));
}

std::optional<absl::Duration> StreamEstimator::FastPrefill(int64_t prompt_tokens, absl::Time now) const {
  if (prefill_fractions_.empty()) return std::nullopt;
  return CostOfPrompt(prompt_tokens) * std::min(1.0, prefill_fractions_.Min(now));
}

absl::Duration StreamEstimator::CostOfAll(const StreamTokens& tokens) const {
  const absl::Duration decoding = step_cost_.decoding_row() + step_cost_.fixed() / max_streams_;
  return CostOfPrompt(tokens.prompt) + decoding * tokens.generated;
}

bool StreamEstimatorPerDevice::knows_steps() const {
  return std::any_of(estimators().begin(), estimators().end(),
                     [](const StreamEstimator& estimator) { return estimator.knows_steps(); });
}

double StreamEstimatorPerDevice::Load(int worker, int64_t running) const {
  const auto requests = static_cast<double>(running);
  if (groups().count() == 1) return requests;
  const std::vector<absl::Duration> costs = Costs({.prompt = 1, .generated = 1});
  if (std::find(costs.begin(), costs.end(), absl::ZeroDuration()) != costs.end()) return requests;
  return requests * absl::ToDoubleSeconds(costs[groups().Of(worker)]);
}

}  // namespace longshort::core
