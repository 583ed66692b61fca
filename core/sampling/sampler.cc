#include "core/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

uint32_t High(uint64_t product) { return static_cast<uint32_t>(product >> 32); }
uint32_t Low(uint64_t product) { return static_cast<uint32_t>(product); }

}  // namespace

PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double UniformAt(uint64_t seed, uint64_t position, uint32_t completion) {
  const PhiloxCounter words = Philox({Low(position), High(position), completion, 0}, {Low(seed), High(seed)});
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

Sampler::Sampler(const SamplingOptions& options, SampleableTokens sampleable, int64_t vocabulary_size,
                 absl::Span<const int32_t> prompt)
    : options_(options),
      sampleable_(std::move(sampleable)),
      bias_(vocabulary_size, 0.0f),
      seen_(vocabulary_size, false),
      generated_(vocabulary_size, 0) {
  candidates_.reserve(sampleable_->size());
  for (const auto& [token, bias] : options_.logit_bias) bias_[token] = bias;
  for (int32_t token : prompt) seen_[token] = true;
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits, int64_t position) {
  LS_RETURN_IF_ERROR(CheckLogitsAreFinite(logits));
  ApplyBiasAndPenalties(logits);
  int32_t token = Likeliest();
  if (options_.temperature > 0) {
    ComputeWeights();
    KeepTopKAndTopP();
    KeepMinP();
    token = Draw(UniformAt(options_.seed, static_cast<uint64_t>(position), options_.completion));
  }
  seen_[token] = true;
  ++generated_[token];
  return token;
}

void Sampler::ApplyBiasAndPenalties(absl::Span<const float> logits) {
  candidates_.clear();
  for (int32_t token : *sampleable_) {
    double logit = static_cast<double>(logits[token]) + bias_[token];
    if (seen_[token]) {
      // A penalty near 0 makes the quotient infinite, and the difference of two infinities is NaN.
      logit = logit > 0 ? std::min(logit / options_.repetition_penalty, std::numeric_limits<double>::max())
                        : logit * options_.repetition_penalty;
    }
    if (generated_[token] > 0) {
      logit -= options_.frequency_penalty * static_cast<double>(generated_[token]) + options_.presence_penalty;
    }
    candidates_.push_back({.token = token, .logit = logit, .weight = 0});
  }
}

int32_t Sampler::Likeliest() const {
  const auto less_likely = [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; };
  return std::max_element(candidates_.begin(), candidates_.end(), less_likely)->token;  // the first on a tie
}

void Sampler::ComputeWeights() {
  double largest = candidates_.front().logit;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.logit);
  // Subtract first: the difference is finite and at most 0, so no temperature, however small, makes the quotient NaN.
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.logit - largest) / options_.temperature);
  }
}

void Sampler::KeepTopKAndTopP() {
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

void Sampler::KeepMinP() {
  if (options_.min_p <= 0) return;
  const auto too_unlikely = [this](const Candidate& candidate) { return candidate.weight < options_.min_p; };
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), too_unlikely), candidates_.end());
}

int32_t Sampler::Draw(double uniform) const {
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

absl::Status CheckLogitsAreFinite(absl::Span<const float> logits) {
  for (size_t token = 0; token < logits.size(); ++token) {
    if (!std::isfinite(logits[token])) {
      return absl::InternalError(absl::StrCat("the model returned the logit ", logits[token], " for token ", token));
    }
  }
  return absl::OkStatus();
}

absl::Status LogProbabilities::SetRow(absl::Span<const float> logits) {
  LS_RETURN_IF_ERROR(CheckLogitsAreFinite(logits));
  logits_ = logits;
  largest_ = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest_);
  log_sum_ = std::log(sum);
  return absl::OkStatus();
}

std::vector<TokenLogProbability> LogProbabilities::Likeliest(int64_t count) {
  const int64_t found = std::min<int64_t>(count, static_cast<int64_t>(logits_.size()));
  if (found == 0) return {};
  order_.resize(logits_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [this](int32_t a, int32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  };
  std::partial_sort(order_.begin(), order_.begin() + found, order_.end(), likelier);
  std::vector<TokenLogProbability> likeliest(found);
  for (int64_t i = 0; i < found; ++i) {
    likeliest[i] = {.token = order_[i], .log_probability = static_cast<float>(Of(order_[i]))};
  }
  return likeliest;
}

}  // namespace longshort::core
