#include "core/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/sampling/row_passes.h"
#include "core/sampling/token_choice.h"

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

Sampler::Sampler(const SamplingOptions& options, SampleableTokens sampleable, absl::Span<const int32_t> prompt)
    : options_(options), sampleable_(std::move(sampleable)) {
  int32_t next = sampleable_->front();
  for (const int32_t token : *sampleable_) {
    while (next < token) excluded_.push_back(next++);
    ++next;
  }
  for (const auto& [token, bias] : options_.logit_bias) changes_[token].bias = bias;
  for (const int32_t token : prompt) Remember(token, /*generated=*/false);
}

void Sampler::Remember(int32_t token, bool generated) {
  if (options_.repetition_penalty != 1) changes_[token].seen = true;
  const bool counts = options_.frequency_penalty != 0 || options_.presence_penalty != 0;
  if (generated && counts) ++changes_[token].generated;
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits, int64_t position) {
  LS_RETURN_IF_ERROR(CheckLogitsAreFinite(logits));
  const int32_t first = sampleable_->front();
  int64_t index = 0;
  if (changes_.empty() && excluded_.empty()) {
    index = Choose(logits.subspan(first, sampleable_->size()), position);
  } else {
    thread_local std::vector<double> row;  // by streams in turn
    ApplyBiasAndPenalties(logits, row);
    index = Choose(absl::MakeConstSpan(row), position);
  }
  const auto token = static_cast<int32_t>(first + index);
  Remember(token, /*generated=*/true);
  return token;
}

template <typename Number>
int64_t Sampler::Choose(absl::Span<const Number> row, int64_t position) const {
  thread_local TokenChoice choice;  // by streams in turn, so that its memory stays in the cache
  if (options_.temperature == 0) return choice.Likeliest(row);
  return choice.Draw(row, static_cast<int64_t>(sampleable_->size()), options_,
                     UniformAt(options_.seed, static_cast<uint64_t>(position), options_.completion));
}

void Sampler::ApplyBiasAndPenalties(absl::Span<const float> logits, std::vector<double>& row) const {
  const int32_t first = sampleable_->front();
  logits = logits.subspan(first, sampleable_->back() + 1 - first);
  row.assign(logits.begin(), logits.end());
  for (const auto& [token, change] : changes_) {
    if (token < first || token > sampleable_->back()) continue;
    double& logit = row[token - first];
    logit += change.bias;
    if (change.seen) {
      // A penalty near 0 makes the quotient infinite, and the difference of two infinities is NaN.
      logit = logit > 0 ? std::min(logit / options_.repetition_penalty, std::numeric_limits<double>::max())
                        : logit * options_.repetition_penalty;
    }
    if (change.generated > 0) {
      logit -= options_.frequency_penalty * static_cast<double>(change.generated) + options_.presence_penalty;
    }
  }
  for (const int32_t token : excluded_) row[token - first] = -std::numeric_limits<double>::infinity();
}

absl::Status CheckLogitsAreFinite(absl::Span<const float> logits) {
  if (RowPasses::Best().all_finite(logits.data(), static_cast<int64_t>(logits.size()))) return absl::OkStatus();
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
  largest_of_blocks_.clear();
  if (logits.empty()) return absl::OkStatus();  // of an item without classes
  const auto size = static_cast<int64_t>(logits.size());
  largest_of_blocks_.resize(RowBlocks(size));
  const NumberPasses<float>& passes = RowPasses::Best().floats;
  passes.find_largest(logits.data(), size, largest_of_blocks_.data());
  largest_ = *std::max_element(largest_of_blocks_.begin(), largest_of_blocks_.end());
  sums_of_blocks_.resize(largest_of_blocks_.size());
  passes.compute_weights(logits.data(), size, largest_of_blocks_.data(),
                         {.largest = largest_, .cut = largest_ + kLeastExponent}, nullptr, sums_of_blocks_.data());
  log_sum_ = std::log(std::accumulate(sums_of_blocks_.begin(), sums_of_blocks_.end(), 0.0));
  return absl::OkStatus();
}

std::vector<TokenLogProbability> LogProbabilities::Likeliest(int64_t count) {
  const int64_t found = std::min<int64_t>(count, static_cast<int64_t>(logits_.size()));
  if (found == 0) return {};
  const float least = LowerBoundOfKthLargest(largest_of_blocks_, found);
  std::vector<int32_t> tokens;
  for (size_t block = 0; block < largest_of_blocks_.size(); ++block) {
    if (largest_of_blocks_[block] < least) continue;
    const auto begin = static_cast<int32_t>(block * kRowBlock);
    const auto end = std::min(static_cast<int32_t>(logits_.size()), static_cast<int32_t>(begin + kRowBlock));
    for (int32_t token = begin; token < end; ++token) {
      if (logits_[token] >= least) tokens.push_back(token);
    }
  }
  const auto likelier = [this](int32_t a, int32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  };
  std::partial_sort(tokens.begin(), tokens.begin() + found, tokens.end(), likelier);
  std::vector<TokenLogProbability> likeliest(found);
  for (int64_t i = 0; i < found; ++i) {
    likeliest[i] = {.token = tokens[i], .log_probability = static_cast<float>(Of(tokens[i]))};
  }
  return likeliest;
}

}  // namespace longshort::core
