#include "server/handlers/generation_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_number.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "server/calls/call_names.h"
#include "server/handlers/sessions.h"
#include "server/handlers/text_reader.h"

namespace longshort::server {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;
constexpr double kMaxTemperature = 100;
constexpr double kMaxPenalty = 100;

// The comparison also rejects NaN.
template <typename Number>
absl::Status CheckClosed(const FieldPath& field, Number value, double low, double high, const CallNames& names) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(names.Of(field), NumberText(value), absl::StrCat("in [", low, ", ", high, "]"));
}

absl::Status CheckHalfOpen(std::string_view field, double value, double above, double high, const CallNames& names) {
  if (value > above && value <= high) return absl::OkStatus();
  return FieldError(names.Of(field), NumberText(value), absl::StrCat("in (", above, ", ", high, "]"));
}

absl::Status CheckLogitBias(const core::SamplingOptions& sampling, int64_t vocabulary_size, const RequestLimits& limits,
                            const CallNames& names) {
  const auto entries = static_cast<int64_t>(sampling.logit_bias.size());
  constexpr char kField[] = "sampling.logit_bias";
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of entries of ", names.Of(kField)); }, entries,
                                     0, limits.logit_biases));
  for (const auto& [token, bias] : sampling.logit_bias) {
    LS_RETURN_IF_ERROR(
        CheckFieldRange([&] { return absl::StrCat("a key of ", names.Of(kField)); }, token, 0, vocabulary_size - 1));
    const FieldPath field = {.field = kField, .index = token};
    LS_RETURN_IF_ERROR(CheckClosed(field, bias, -kMaxPenalty, kMaxPenalty, names));
  }
  return absl::OkStatus();
}

absl::Status CheckStopStrings(const GenerateCall& call, const core::ServedLanguageModel& model,
                              const RequestLimits& limits, const CallNames& names) {
  const auto count = static_cast<int64_t>(call.stop.size());
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of entries of ", names.Of("stop")); }, count, 0,
                                     limits.stop_strings));
  if (count > 0 && model.tokenizer == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of("stop"), " is set; it must be empty, because the model has no vocabulary"));
  }
  for (int64_t i = 0; i < count; ++i) {
    LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of bytes of ", names.Of("stop", i)); },
                                       static_cast<int64_t>(call.stop[i].size()), 1, limits.stop_string_bytes));
  }
  return absl::OkStatus();
}

// The tokens of each prompt.
absl::StatusOr<std::vector<std::vector<int32_t>>> ReadPrompts(const GenerateCall& call,
                                                              const core::ServedLanguageModel& model,
                                                              const RequestLimits& limits, const CallNames& names) {
  const auto count = static_cast<int64_t>(call.prompts.size());
  const int64_t completions = std::max<int64_t>(call.completions, 1);
  if (count == 0 && call.session.has_value()) return std::vector<std::vector<int32_t>>(1);
  if (count > 1) {
    const int64_t max = call.session.has_value() ? 1 : limits.inputs / completions;
    LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of ", names.Of("prompts")); }, count, 1, max));
  }
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t i = 0; i < std::max<int64_t>(count, 1); ++i) {
    const NamedText prompt = {.input = count == 0 ? TextInput() : call.prompts[i],
                              .path = {.field = "prompt", .index = count > 1 ? std::optional(i) : std::nullopt}};
    LS_ASSIGN_OR_RETURN(prompts.emplace_back(), ReadText(prompt, names, model, limits.prompt_tokens));
  }
  return prompts;
}

// Checks the tokens that all completions read, and the tokens that the answer describes.
absl::Status CheckTotals(const std::vector<std::vector<int32_t>>& prompts, int64_t completions_of_prompt,
                         const core::GenerationRequest& one, bool echo, const RequestLimits& limits,
                         const CallNames& names) {
  int64_t prompt_tokens = 0;
  for (const std::vector<int32_t>& prompt : prompts) prompt_tokens += static_cast<int64_t>(prompt.size());
  prompt_tokens *= completions_of_prompt;
  LS_RETURN_IF_ERROR(
      CheckFieldRange([&] { return absl::StrCat("number of prompt tokens times ", names.Of("completions")); },
                      prompt_tokens, 0, limits.prompt_tokens));
  const int64_t completions = static_cast<int64_t>(prompts.size()) * completions_of_prompt;
  const int64_t places = (one.log_probabilities ? one.max_tokens * completions : 0) + (echo ? prompt_tokens : 0);
  const auto name = [&] {
    return absl::StrCat("number of tokens to return (log-probabilities and ", names.Of("echo"), ", times ",
                        names.Of("completions"), ", times 1 + ", names.Of("top_alternatives"), ")");
  };
  return CheckFieldRange(name, places * (1 + one.top_alternatives), 0, limits.described_tokens);
}

}  // namespace

absl::StatusOr<core::SamplingOptions> CheckSampling(core::SamplingOptions sampling, int64_t vocabulary_size,
                                                    const RequestLimits& limits, const CallNames& names) {
  const auto closed = [&](std::string_view field, double value, double low, double high) {
    return CheckClosed({.field = field}, value, low, high, names);
  };
  LS_RETURN_IF_ERROR(closed("sampling.temperature", sampling.temperature, 0, kMaxTemperature));
  if (sampling.top_k < 0) return FieldError(names.Of("sampling.top_k"), sampling.top_k, "at least 0");
  if (sampling.top_k >= vocabulary_size) sampling.top_k = 0;
  LS_RETURN_IF_ERROR(CheckHalfOpen("sampling.top_p", sampling.top_p, 0, 1, names));
  LS_RETURN_IF_ERROR(closed("sampling.min_p", sampling.min_p, 0, 1));
  LS_RETURN_IF_ERROR(CheckHalfOpen("sampling.repetition_penalty", sampling.repetition_penalty, 0, kMaxPenalty, names));
  LS_RETURN_IF_ERROR(closed("sampling.frequency_penalty", sampling.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  LS_RETURN_IF_ERROR(closed("sampling.presence_penalty", sampling.presence_penalty, -kMaxPenalty, kMaxPenalty));
  LS_RETURN_IF_ERROR(CheckLogitBias(sampling, vocabulary_size, limits, names));
  // Their order may differ between equal calls.
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end());
  return sampling;
}

absl::StatusOr<GenerationPlan> PlanGeneration(const GenerateCall& call, const core::ServedLanguageModel& model,
                                              const RequestLimits& limits, const CallNames& names,
                                              const core::RequestContext& context) {
  const int64_t completions = call.completions == 0 ? 1 : call.completions;
  const auto check = [&](std::string_view field, int64_t value, int64_t low, int64_t high) {
    return CheckFieldRange([&] { return names.Of(field); }, value, low, high);
  };
  LS_RETURN_IF_ERROR(check("completions", completions, 1, std::min(limits.completions, model.max_items)));
  LS_RETURN_IF_ERROR(check("max_tokens", call.max_tokens, 0, limits.generate_tokens));
  LS_RETURN_IF_ERROR(check("top_alternatives", call.top_alternatives, 0, limits.top_alternatives));

  core::GenerationRequest one;
  one.context = context;
  one.max_tokens = call.max_tokens == 0 ? std::min(kDefaultMaxTokens, limits.generate_tokens) : call.max_tokens;
  LS_ASSIGN_OR_RETURN(one.sampling, CheckSampling(call.sampling, model.info.vocabulary_size, limits, names));
  one.sampling.seed = call.seed.has_value() ? *call.seed : RandomNumber();
  LS_RETURN_IF_ERROR(CheckStopStrings(call, model, limits, names));
  one.stop_strings = call.stop;
  if (call.session.has_value()) {
    LS_RETURN_IF_ERROR(CheckSession(*call.session, names));
    one.session = call.session;
    one.session->keep_partial = call.keep_partial;
    if (completions > 1) {
      return FieldError(names.Of("completions"), completions, "1 with a session, which has a single continuation");
    }
  }
  if (call.keep_partial && !call.session.has_value()) {
    return FieldError(names.Of("keep_partial"), "true", "false without a session, which would keep the text");
  }

  GenerationPlan plan;
  plan.completions = completions;
  plan.seed = one.sampling.seed;
  plan.return_raw = call.return_raw;
  // Without a vocabulary there is no text, so the ids are the answer.
  plan.describe_tokens = call.token_log_probabilities || model.tokenizer == nullptr;
  one.log_probabilities = plan.describe_tokens;
  one.prompt_log_probabilities = plan.describe_tokens && call.echo;
  one.top_alternatives = plan.describe_tokens ? call.top_alternatives : 0;

  LS_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> prompts, ReadPrompts(call, model, limits, names));
  LS_RETURN_IF_ERROR(CheckTotals(prompts, completions, one, call.echo, limits, names));
  for (const std::vector<int32_t>& prompt : prompts) {
    plan.echoes.push_back(call.echo ? DecodeTokens(prompt, model) : "");
    one.prompt = prompt;
    for (one.sampling.completion = 0; one.sampling.completion < completions; ++one.sampling.completion) {
      plan.requests.push_back(one);
    }
  }
  return plan;
}

int64_t GenerationPlan::AnswerBytes() const {
  // Text and raw bytes of a token; the description of a token or alternative.
  constexpr int64_t kTextBytes = 8, kDescriptionBytes = 24;
  int64_t bytes = 0;
  for (const core::GenerationRequest& one : requests) {
    const int64_t described = one.max_tokens + static_cast<int64_t>(echoes.front().empty() ? 0 : one.prompt.size());
    bytes += one.max_tokens * kTextBytes;
    if (describe_tokens) bytes += described * (1 + one.top_alternatives) * kDescriptionBytes;
  }
  for (const std::string& echo : echoes) bytes += completions * static_cast<int64_t>(echo.size());
  return bytes;
}

absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits, const CallNames& names) {
  const auto completions = static_cast<int64_t>(plan.requests.size());
  const auto name = [&] {
    return absl::StrCat(names.Of("max_tokens"), " times ", names.Of("completions"), " (", names.streaming_rpc(),
                        " takes more)");
  };
  return CheckFieldRange(name, plan.requests.front().max_tokens * completions, 1, limits.answer_tokens);
}

}  // namespace longshort::server
