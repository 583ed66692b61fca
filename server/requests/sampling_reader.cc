#include "server/requests/sampling_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/field_error.h"

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
absl::Status CheckClosed(const char* field, Number value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(absl::StrCat("sampling.", field), TextOf(value), absl::StrCat("in [", low, ", ", high, "]"));
}

absl::Status CheckHalfOpen(const char* field, double value, double above, double high) {
  if (value > above && value <= high) return absl::OkStatus();
  return FieldError(absl::StrCat("sampling.", field), TextOf(value), absl::StrCat("in (", above, ", ", high, "]"));
}

absl::Status ReadLogitBias(const v1::Sampling& sampling, int64_t vocabulary_size, const RequestLimits& limits,
                           SamplingOptions& options) {
  LS_RETURN_IF_ERROR(CheckFieldRange("number of entries of sampling.logit_bias",
                                     static_cast<int64_t>(sampling.logit_bias().size()), 0, limits.logit_biases));
  for (const auto& [token, bias] : sampling.logit_bias()) {
    LS_RETURN_IF_ERROR(CheckFieldRange("a key of sampling.logit_bias", token, 0, vocabulary_size - 1));
    LS_RETURN_IF_ERROR(CheckClosed(absl::StrCat("logit_bias[", token, "]").c_str(), bias, -kMostPenalty, kMostPenalty));
    options.logit_bias.emplace_back(token, bias);
  }
  // The map has no order of its own; equal requests should be equal to the engine too.
  std::sort(options.logit_bias.begin(), options.logit_bias.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SamplingOptions> ReadSampling(const v1::Sampling& sampling, int64_t vocabulary_size,
                                             const RequestLimits& limits) {
  SamplingOptions options;
  if (sampling.has_temperature()) options.temperature = sampling.temperature();
  if (sampling.has_top_p()) options.top_p = sampling.top_p();
  if (sampling.has_repetition_penalty()) options.repetition_penalty = sampling.repetition_penalty();
  options.min_p = sampling.min_p();
  options.frequency_penalty = sampling.frequency_penalty();
  options.presence_penalty = sampling.presence_penalty();
  options.seed = sampling.seed();

  LS_RETURN_IF_ERROR(CheckClosed("temperature", options.temperature, 0, kMostTemperature));
  if (sampling.top_k() < 0) return FieldError("sampling.top_k", sampling.top_k(), "at least 0");
  options.top_k = sampling.top_k() >= vocabulary_size ? 0 : sampling.top_k();
  LS_RETURN_IF_ERROR(CheckHalfOpen("top_p", options.top_p, 0, 1));
  LS_RETURN_IF_ERROR(CheckClosed("min_p", options.min_p, 0, 1));
  LS_RETURN_IF_ERROR(CheckHalfOpen("repetition_penalty", options.repetition_penalty, 0, kMostPenalty));
  LS_RETURN_IF_ERROR(CheckClosed("frequency_penalty", options.frequency_penalty, -kMostPenalty, kMostPenalty));
  LS_RETURN_IF_ERROR(CheckClosed("presence_penalty", options.presence_penalty, -kMostPenalty, kMostPenalty));
  LS_RETURN_IF_ERROR(ReadLogitBias(sampling, vocabulary_size, limits, options));
  return options;
}

}  // namespace longshort
