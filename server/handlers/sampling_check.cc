#include "server/handlers/sampling_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"

namespace longshort {
namespace {

constexpr double kMostTemperature = 100;
constexpr double kMostPenalty = 100;

// The shortest text that no other number of its type has, lest 1.0000001 be told as 1.
template <typename Number>
std::string TextOf(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

// Written so that NaN is refused.
template <typename Number>
absl::Status CheckClosed(const FieldPath& field, Number value, double low, double high, const CallNames& names) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(names.Of(field), TextOf(value), absl::StrCat("in [", low, ", ", high, "]"));
}

absl::Status CheckHalfOpen(CallField field, double value, double above, double high, const CallNames& names) {
  if (value > above && value <= high) return absl::OkStatus();
  return FieldError(names.Of(field), TextOf(value), absl::StrCat("in (", above, ", ", high, "]"));
}

absl::Status CheckLogitBias(const SamplingOptions& sampling, int64_t vocabulary_size, const RequestLimits& limits,
                            const CallNames& names) {
  const auto entries = static_cast<int64_t>(sampling.logit_bias.size());
  if (entries == 0) return absl::OkStatus();
  const std::string name = names.Of(CallField::kLogitBias);
  LS_RETURN_IF_ERROR(CheckFieldRange("number of entries of " + name, entries, 0, limits.logit_biases));
  const std::string key = "a key of " + name;
  for (const auto& [token, bias] : sampling.logit_bias) {
    LS_RETURN_IF_ERROR(CheckFieldRange(key, token, 0, vocabulary_size - 1));
    const FieldPath field = {.field = CallField::kLogitBias, .index = token};
    LS_RETURN_IF_ERROR(CheckClosed(field, bias, -kMostPenalty, kMostPenalty, names));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SamplingOptions> CheckSampling(SamplingOptions sampling, int64_t vocabulary_size,
                                              const RequestLimits& limits, const CallNames& names) {
  const auto closed = [&](CallField field, double value, double low, double high) {
    return CheckClosed({.field = field}, value, low, high, names);
  };
  LS_RETURN_IF_ERROR(closed(CallField::kTemperature, sampling.temperature, 0, kMostTemperature));
  if (sampling.top_k < 0) return FieldError(names.Of(CallField::kSamplingTopK), sampling.top_k, "at least 0");
  if (sampling.top_k >= vocabulary_size) sampling.top_k = 0;
  LS_RETURN_IF_ERROR(CheckHalfOpen(CallField::kTopP, sampling.top_p, 0, 1, names));
  LS_RETURN_IF_ERROR(closed(CallField::kMinP, sampling.min_p, 0, 1));
  LS_RETURN_IF_ERROR(CheckHalfOpen(CallField::kRepetitionPenalty, sampling.repetition_penalty, 0, kMostPenalty, names));
  LS_RETURN_IF_ERROR(closed(CallField::kFrequencyPenalty, sampling.frequency_penalty, -kMostPenalty, kMostPenalty));
  LS_RETURN_IF_ERROR(closed(CallField::kPresencePenalty, sampling.presence_penalty, -kMostPenalty, kMostPenalty));
  LS_RETURN_IF_ERROR(CheckLogitBias(sampling, vocabulary_size, limits, names));
  // Fronts may give them in any order; equal calls should be equal to the engine too.
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end());
  return sampling;
}

}  // namespace longshort
