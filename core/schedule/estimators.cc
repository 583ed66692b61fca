#include "core/schedule/estimators.h"

#include <algorithm>
#include <cmath>

namespace longshort::core {
namespace {

int Magnitude(int64_t units) {
  int magnitude = 0;
  for (; units > 1; units /= 2) ++magnitude;
  return magnitude;
}

absl::Duration Times(double seconds_per_unit, int64_t units) {
  return absl::Seconds(seconds_per_unit * static_cast<double>(units));
}

// After the first step only the total is known. Until later steps separate the parts, the fixed part counts like this
// many rows.
constexpr double kFixedInRows = 32;
// The fraction of a misprediction that a step corrects after the first steps, and the maximum factor of one correction.
constexpr double kLearningRate = 0.3;
constexpr double kLargestFactor = 4;

}  // namespace

void RecentValues::Add(double value, absl::Time now) {
  double* const begin = sorted_.data();
  if (count_ == kCapacity) {
    double* const oldest = std::lower_bound(begin, begin + count_, values_[next_]);
    std::move(oldest + 1, begin + count_--, oldest);
  }
  double* const place = std::upper_bound(begin, begin + count_, value);
  std::move_backward(place, begin + count_, begin + count_ + 1);
  *place = value;
  ++count_;
  values_[next_] = value;
  next_ = (next_ + 1) % kCapacity;
  latest_ = now;
}

double RecentValues::Min(absl::Time now) const { return sorted_[0] * DecayAt(now); }

double RecentValues::Median(absl::Time now) const { return Median() * DecayAt(now); }

double RecentValues::DecayAt(absl::Time now) const {
  return std::exp2(-std::max(0.0, absl::FDivDuration(now - latest_, kHalfLife)));
}

WorkerGroups::WorkerGroups(absl::Span<const models::WorkerDevice> workers) {
  std::vector<models::WorkerDevice> devices;
  for (const models::WorkerDevice& worker : workers) {
    const auto device = std::find_if(devices.begin(), devices.end(),
                                     [&](const models::WorkerDevice& known) { return known.IsOnDeviceOf(worker); });
    const auto group = static_cast<size_t>(device - devices.begin());
    if (device == devices.end()) {
      devices.push_back(worker);
      sizes_.push_back(0);
    }
    ++sizes_[group];
    group_of_.push_back(group);
  }
}

absl::Duration WorkerGroups::Shared(absl::Span<const absl::Duration> times) const {
  if (count() == 1) return times[0] / workers();
  double pieces_per_second = 0;
  int64_t known = 0;
  for (size_t group = 0; group < count(); ++group) {
    if (times[group] <= absl::ZeroDuration()) continue;
    pieces_per_second += static_cast<double>(sizes_[group]) / absl::ToDoubleSeconds(times[group]);
    known += sizes_[group];
  }
  if (known == 0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(known) / static_cast<double>(workers()) / pieces_per_second);
}

absl::Duration WorkerGroups::PartOfAll(size_t group, absl::Duration time,
                                       absl::Span<const absl::Duration> times) const {
  if (count() == 1 || times[group] <= absl::ZeroDuration()) return time / workers();
  return time * absl::FDivDuration(Shared(times), times[group]);
}

void RunTimeEstimator::Learn(const RunShape& shape, absl::Duration run, absl::Time now) {
  if (kinds_.count(shape.kind) == 0 && kinds_.size() == kMaxKinds) RemoveOldest();
  Kind& kind = kinds_[shape.kind];
  kind.latest = now;
  const double seconds_per_unit = absl::ToDoubleSeconds(run) / static_cast<double>(shape.units);
  kind.seconds_per_unit.Add(seconds_per_unit, now);
  kind.of_magnitude[Magnitude(shape.units)].Add(seconds_per_unit, now);
}

void RunTimeEstimator::RemoveOldest() {
  kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(),
                                [](const auto& a, const auto& b) { return a.second.latest < b.second.latest; }));
}

std::optional<RunTime> RunTimeEstimator::Of(const RunShape& shape, absl::Time now) const {
  const auto kind = kinds_.find(shape.kind);
  if (kind == kinds_.end()) return std::nullopt;
  const auto runs = kind->second.of_magnitude.find(Magnitude(shape.units));
  if (runs == kind->second.of_magnitude.end()) return std::nullopt;
  return RunTime{.fast = Times(runs->second.Min(now), shape.units),
                 .typical = Times(runs->second.Median(now), shape.units)};
}

absl::Duration RunTimeEstimator::PartOfRun(const RunShape& part) const {
  const auto kind = kinds_.find(part.kind);
  if (kind == kinds_.end()) return absl::ZeroDuration();
  return Times(kind->second.seconds_per_unit.Median(), part.units);
}

std::optional<absl::Duration> RunTimeEstimatorPerDevice::Fastest(const RunShape& shape, absl::Time now) const {
  return Min([&](const RunTimeEstimator& estimator) -> std::optional<absl::Duration> {
    const auto run = estimator.Of(shape, now);
    return run.has_value() ? std::optional(run->fast) : std::nullopt;
  });
}

void StepCost::Learn(const StepRows& rows, absl::Duration step) {
  const double measured = absl::ToDoubleSeconds(step);
  if (measured <= 0) return;
  ++steps_;
  if (steps_ == 1) {
    const double row = measured / (kFixedInRows + static_cast<double>(rows.decoding + rows.prefill));
    fixed_ = kFixedInRows * row;
    decoding_row_ = prefill_row_ = row;
    return;
  }
  const double predicted = absl::ToDoubleSeconds(Of(rows));
  const double shares[] = {fixed_ / predicted, decoding_row_ * static_cast<double>(rows.decoding) / predicted,
                           prefill_row_ * static_cast<double>(rows.prefill) / predicted};
  const double factor = std::clamp(measured / predicted, 1 / kLargestFactor, kLargestFactor);
  const double rate = std::max(kLearningRate, 1 / static_cast<double>(steps_));
  const double squares = shares[0] * shares[0] + shares[1] * shares[1] + shares[2] * shares[2];
  const auto corrected = [&](double part, double share) { return part * std::pow(factor, rate * share / squares); };
  fixed_ = corrected(fixed_, shares[0]);
  decoding_row_ = corrected(decoding_row_, shares[1]);
  prefill_row_ = corrected(prefill_row_, shares[2]);
}

absl::Duration StepCost::Of(const StepRows& rows) const {
  return absl::Seconds(fixed_ + decoding_row_ * static_cast<double>(rows.decoding) +
                       prefill_row_ * static_cast<double>(rows.prefill));
}

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
