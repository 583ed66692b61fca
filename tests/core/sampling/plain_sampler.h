// The sampler as its options read: it computes the weight of every token and sorts the whole row. The reference of
// Sampler, which takes the same tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/sampling/sampler.h"

namespace longshort::core {

class PlainSampler {
 public:
  PlainSampler(const SamplingOptions& options, SampleableTokens sampleable, int64_t vocabulary_size,
               absl::Span<const int32_t> prompt)
      : options_(options),
        sampleable_(std::move(sampleable)),
        bias_(vocabulary_size, 0.0f),
        seen_(vocabulary_size, false),
        generated_(vocabulary_size, 0) {
    for (const auto& [token, bias] : options_.logit_bias) bias_[token] = bias;
    for (int32_t token : prompt) seen_[token] = true;
  }

  // REQUIRES: all logits are finite.
  int32_t Sample(absl::Span<const float> logits, int64_t position) {
    ApplyBiasAndPenalties(logits);
    int32_t token = Likeliest().token;
    if (options_.temperature > 0) {
      const double largest = Likeliest().logit;
      // Subtract first: the difference is finite, so no temperature, however small, makes the quotient NaN.
      for (Candidate& candidate : candidates_) {
        candidate.weight = std::exp((candidate.logit - largest) / options_.temperature);
      }
      KeepTopKAndTopP();
      KeepMinP();
      token = Draw(UniformAt(options_.seed, static_cast<uint64_t>(position), options_.completion));
    }
    seen_[token] = true;
    ++generated_[token];
    return token;
  }

  // How many tokens the last draw chose from.
  size_t kept() const { return candidates_.size(); }

 private:
  struct Candidate {
    int32_t token;
    double logit;   // with bias and penalties
    double weight;  // proportional to its probability; the likeliest has 1
  };

  void ApplyBiasAndPenalties(absl::Span<const float> logits) {
    candidates_.clear();
    for (int32_t token : *sampleable_) {
      double logit = static_cast<double>(logits[token]) + bias_[token];
      if (seen_[token]) {
        logit = logit > 0 ? std::min(logit / options_.repetition_penalty, std::numeric_limits<double>::max())
                          : logit * options_.repetition_penalty;
      }
      if (generated_[token] > 0) {
        logit -= options_.frequency_penalty * static_cast<double>(generated_[token]) + options_.presence_penalty;
      }
      candidates_.push_back({.token = token, .logit = logit, .weight = 0});
    }
  }

  const Candidate& Likeliest() const {
    const auto less_likely = [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; };
    return *std::max_element(candidates_.begin(), candidates_.end(), less_likely);  // the first on a tie
  }

  void KeepTopKAndTopP() {
    const size_t top_k = options_.top_k == 0 ? candidates_.size() : static_cast<size_t>(options_.top_k);
    if (top_k >= candidates_.size() && options_.top_p >= 1) return;
    const auto likelier = [](const Candidate& a, const Candidate& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    const auto by_id = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
    std::sort(candidates_.begin(), candidates_.end(), likelier);
    candidates_.resize(std::min(top_k, candidates_.size()));
    if (options_.top_p < 1) {
      double total = 0;
      for (const Candidate& candidate : candidates_) total += candidate.weight;
      double reached = 0;
      size_t kept = 0;
      while (kept < candidates_.size() && reached < options_.top_p * total) reached += candidates_[kept++].weight;
      candidates_.resize(kept);  // at least one: top_p * total > 0
    }
    std::sort(candidates_.begin(), candidates_.end(), by_id);
  }

  void KeepMinP() {
    if (options_.min_p <= 0) return;
    const auto too_unlikely = [this](const Candidate& candidate) { return candidate.weight < options_.min_p; };
    candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), too_unlikely), candidates_.end());
  }

  int32_t Draw(double uniform) const {
    double total = 0;
    for (const Candidate& candidate : candidates_) total += candidate.weight;
    double rest = uniform * total;
    int32_t last = candidates_.front().token;
    for (const Candidate& candidate : candidates_) {
      if (candidate.weight <= 0) continue;
      last = candidate.token;
      rest -= candidate.weight;
      if (rest < 0) break;
    }
    return last;
  }

  const SamplingOptions options_;
  const SampleableTokens sampleable_;
  std::vector<float> bias_;         // [V]
  std::vector<bool> seen_;          // [V]
  std::vector<int64_t> generated_;  // [V]
  std::vector<Candidate> candidates_;
};

}  // namespace longshort::core
