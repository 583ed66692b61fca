#include "tests/determinism/sampling_margin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/sampling/sampler.h"

namespace longshort {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// [V], with bias and penalties.
std::vector<double> Adjusted(const core::SamplingOptions& options, absl::Span<const float> logits,
                             absl::Span<const int32_t> prompt, absl::Span<const int32_t> generated) {
  std::vector<double> adjusted(logits.begin(), logits.end());
  std::vector<int64_t> times(logits.size(), 0);
  std::vector<bool> seen(logits.size(), false);
  for (const int32_t token : prompt) seen[token] = true;
  for (const int32_t token : generated) seen[token] = true, ++times[token];
  for (const auto& [token, bias] : options.logit_bias) adjusted[token] += bias;
  for (size_t token = 0; token < adjusted.size(); ++token) {
    double& logit = adjusted[token];
    if (seen[token]) {
      logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
    }
    if (times[token] == 0) continue;
    logit -= options.frequency_penalty * static_cast<double>(times[token]) + options.presence_penalty;
  }
  return adjusted;
}

// The kept tokens by ascending id, and how close that set was to another.
struct Kept {
  std::vector<int32_t> tokens;
  double margin = kFar;
};

Kept Keep(const core::SamplingOptions& options, const std::vector<double>& logits, const std::vector<double>& weights) {
  Kept kept;
  kept.tokens.resize(logits.size());
  std::iota(kept.tokens.begin(), kept.tokens.end(), 0);
  std::stable_sort(kept.tokens.begin(), kept.tokens.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const auto cut = [&](size_t count) {
    if (count >= kept.tokens.size()) return;
    kept.margin = std::min(kept.margin, logits[kept.tokens[count - 1]] - logits[kept.tokens[count]]);
    kept.tokens.resize(count);
  };
  if (options.top_k > 0) cut(static_cast<size_t>(options.top_k));
  if (options.top_p < 1) {
    double total = 0, reached = 0;
    size_t count = 0;
    for (const int32_t token : kept.tokens) total += weights[token];
    for (const int32_t token : kept.tokens) {
      if (reached < options.top_p * total) ++count;
      reached += weights[token];
      kept.margin = std::min(kept.margin, std::abs(reached / total - options.top_p));
    }
    cut(count);
  }
  if (options.min_p > 0) {
    const auto too_unlikely = [&](int32_t token) { return weights[token] < options.min_p; };
    for (const int32_t token : kept.tokens) {
      kept.margin = std::min(kept.margin, std::abs(weights[token] - options.min_p));
    }
    kept.tokens.erase(std::remove_if(kept.tokens.begin(), kept.tokens.end(), too_unlikely), kept.tokens.end());
  }
  std::sort(kept.tokens.begin(), kept.tokens.end());
  return kept;
}

}  // namespace

double SamplingMargin(const core::SamplingOptions& options, absl::Span<const float> logits,
                      absl::Span<const int32_t> prompt, absl::Span<const int32_t> generated) {
  const std::vector<double> adjusted = Adjusted(options, logits, prompt, generated);
  std::vector<double> descending = adjusted;
  std::sort(descending.rbegin(), descending.rend());
  if (options.temperature == 0) return descending[0] - descending[1];

  std::vector<double> weights(adjusted.size());
  for (size_t token = 0; token < adjusted.size(); ++token) {
    weights[token] = std::exp((adjusted[token] - descending[0]) / options.temperature);
  }
  const Kept kept = Keep(options, adjusted, weights);
  double total = 0, end = 0, margin = kept.margin;
  for (const int32_t token : kept.tokens) total += weights[token];
  const double uniform = core::UniformAt(options.seed, prompt.size() + generated.size(), options.completion);
  for (size_t i = 0; i + 1 < kept.tokens.size(); ++i) {
    end += weights[kept.tokens[i]];
    margin = std::min(margin, std::abs(end / total - uniform));
  }
  return margin;
}

}  // namespace longshort
