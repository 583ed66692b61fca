#include "server/handlers/generation_plan.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/sampling_check.h"
#include "server/handlers/session_check.h"
#include "server/handlers/text_reader.h"

namespace longshort {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;

absl::Status CheckStopStrings(const GenerateCall& call, const ServedLanguageModel& model, const RequestLimits& limits,
                              const CallNames& names) {
  if (call.stop.empty()) return absl::OkStatus();
  const std::string name = names.Of(CallField::kStop);
  LS_RETURN_IF_ERROR(
      CheckFieldRange("number of entries of " + name, static_cast<int64_t>(call.stop.size()), 0, limits.stop_strings));
  if (model.tokenizer == nullptr) {
    return absl::InvalidArgumentError(name + " is set; it must be empty, because the model has no vocabulary");
  }
  for (size_t i = 0; i < call.stop.size(); ++i) {
    LS_RETURN_IF_ERROR(
        CheckFieldRange(absl::StrCat("number of bytes of ", names.Of(CallField::kStop, static_cast<int64_t>(i))),
                        static_cast<int64_t>(call.stop[i].size()), 1, limits.stop_string_bytes));
  }
  return absl::OkStatus();
}

// What the completions read together, and what the answer would hold token by token.
absl::Status CheckTotals(const GenerateCall& call, const GenerationPlan& plan, int64_t completions,
                         const RequestLimits& limits, const CallNames& names) {
  const GenerationRequest& first = plan.requests.front();
  const auto prompt_tokens = static_cast<int64_t>(first.prompt.size());
  LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of prompt tokens times ", names.Of(CallField::kCompletions)),
                                     prompt_tokens * completions, 0, limits.prompt_tokens));
  const int64_t places = (plan.describe_tokens ? first.max_tokens : 0) + (call.echo ? prompt_tokens : 0);
  return CheckFieldRange(
      absl::StrCat("number of tokens to return (log-probabilities and ", names.Of(CallField::kEcho), ", times ",
                   names.Of(CallField::kCompletions), ", times 1 + ", names.Of(CallField::kTopAlternatives), ")"),
      places * completions * (1 + first.top_alternatives), 0, limits.described_tokens);
}

}  // namespace

absl::StatusOr<GenerationPlan> PlanGeneration(const GenerateCall& call, const ServedLanguageModel& model,
                                              const RequestLimits& limits, const CallNames& names,
                                              const RequestContext& context) {
  const int64_t completions = call.completions == 0 ? 1 : call.completions;
  LS_RETURN_IF_ERROR(CheckFieldRange(names.Of(CallField::kCompletions), completions, 1,
                                     std::min(limits.completions, model.max_items)));
  LS_RETURN_IF_ERROR(CheckFieldRange(names.Of(CallField::kMaxTokens), call.max_tokens, 0, limits.generate_tokens));
  LS_RETURN_IF_ERROR(
      CheckFieldRange(names.Of(CallField::kTopAlternatives), call.top_alternatives, 0, limits.top_alternatives));

  GenerationRequest one;
  one.context = context;
  one.max_tokens = call.max_tokens == 0 ? std::min(kDefaultMaxTokens, limits.generate_tokens) : call.max_tokens;
  LS_ASSIGN_OR_RETURN(one.sampling, CheckSampling(call.sampling, model.info.vocabulary_size, limits, names));
  one.sampling.seed = call.seed.has_value() ? *call.seed : absl::BitGen()();
  LS_RETURN_IF_ERROR(CheckStopStrings(call, model, limits, names));
  one.stop_strings = call.stop;
  if (call.session.has_value()) {
    LS_RETURN_IF_ERROR(CheckSession(*call.session, names));
    one.session = call.session;
    if (completions > 1) {
      return FieldError(names.Of(CallField::kCompletions), completions, "1 with a session, which goes on from one end");
    }
  }
  if (call.prompt.has_value() || !call.session.has_value()) {
    const NamedText prompt = {.input = call.prompt.has_value() ? *call.prompt : TextInput(),
                              .path = {.field = CallField::kPrompt}};
    LS_ASSIGN_OR_RETURN(one.prompt, ReadText(prompt, names, EncoderOf(model), limits.prompt_tokens));
  }

  GenerationPlan plan;
  plan.seed = one.sampling.seed;
  plan.return_raw = call.return_raw;
  // A model without vocabulary has no text: its ids are the answer.
  plan.describe_tokens = call.token_log_probabilities || model.tokenizer == nullptr;
  plan.describe_prompt = plan.describe_tokens && call.echo;
  if (call.echo) plan.echo = DecodeTokens(one.prompt, model);
  one.log_probabilities = plan.describe_tokens;
  one.prompt_log_probabilities = plan.describe_prompt;
  one.top_alternatives = plan.describe_tokens ? call.top_alternatives : 0;

  plan.requests.push_back(std::move(one));
  LS_RETURN_IF_ERROR(CheckTotals(call, plan, completions, limits, names));
  while (static_cast<int64_t>(plan.requests.size()) < completions) {
    plan.requests.push_back(plan.requests.front());
    plan.requests.back().sampling.completion = static_cast<uint32_t>(plan.requests.size() - 1);
  }
  return plan;
}

absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits, const CallNames& names) {
  const auto completions = static_cast<int64_t>(plan.requests.size());
  return CheckFieldRange(absl::StrCat(names.Of(CallField::kMaxTokens), " times ", names.Of(CallField::kCompletions),
                                      " (", names.streaming_rpc(), " takes more)"),
                         plan.requests.front().max_tokens * completions, 1, limits.answer_tokens);
}

}  // namespace longshort
