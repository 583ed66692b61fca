#include "server/requests/generate_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/field_error.h"
#include "server/requests/input_reader.h"
#include "server/requests/random_number.h"
#include "server/requests/sampling_reader.h"
#include "server/requests/session_reader.h"

namespace longshort {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;

absl::StatusOr<std::vector<std::string>> ReadStopStrings(const v1::GenerateRequest& request,
                                                         const ServedLanguageModel& model,
                                                         const RequestLimits& limits) {
  LS_RETURN_IF_ERROR(CheckFieldRange("number of entries of stop", request.stop_size(), 0, limits.stop_strings));
  if (request.stop_size() > 0 && model.tokenizer == nullptr) {
    return absl::InvalidArgumentError("stop is set; it must be empty, because the model has no vocabulary");
  }
  for (int i = 0; i < request.stop_size(); ++i) {
    LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of bytes of stop[", i, "]"),
                                       static_cast<int64_t>(request.stop(i).size()), 1, limits.stop_string_bytes));
  }
  return std::vector<std::string>(request.stop().begin(), request.stop().end());
}

// What the completions read together, and what the answer would hold token by token.
absl::Status CheckTotals(const v1::GenerateRequest& request, const GenerationPlan& plan, int64_t completions,
                         const RequestLimits& limits) {
  const GenerationRequest& first = plan.requests.front();
  const auto prompt_tokens = static_cast<int64_t>(first.prompt.size());
  LS_RETURN_IF_ERROR(CheckFieldRange("number of prompt tokens times completions", prompt_tokens * completions, 0,
                                     limits.prompt_tokens));
  const int64_t places = (plan.describe_tokens ? first.max_tokens : 0) + (request.echo() ? prompt_tokens : 0);
  return CheckFieldRange(
      "number of tokens to return (log-probabilities and echo, times completions, times 1 + top_alternatives)",
      places * completions * (1 + first.top_alternatives), 0, limits.described_tokens);
}

}  // namespace

absl::StatusOr<GenerationPlan> ReadGenerateRequest(const v1::GenerateRequest& request, const ServedLanguageModel& model,
                                                   const RequestLimits& limits, const RequestContext& context) {
  const int64_t completions = request.completions() == 0 ? 1 : request.completions();
  LS_RETURN_IF_ERROR(CheckFieldRange("completions", completions, 1, std::min(limits.completions, model.max_items)));
  LS_RETURN_IF_ERROR(CheckFieldRange("max_tokens", request.max_tokens(), 0, limits.generate_tokens));
  LS_RETURN_IF_ERROR(CheckFieldRange("top_alternatives", request.top_alternatives(), 0, limits.top_alternatives));

  GenerationRequest one;
  one.context = context;
  one.max_tokens =
      request.max_tokens() == 0 ? std::min(kDefaultMaxTokens, limits.generate_tokens) : request.max_tokens();
  LS_ASSIGN_OR_RETURN(one.sampling, ReadSampling(request.sampling(), model.info.vocabulary_size, limits));
  if (!request.sampling().has_seed()) one.sampling.seed = RandomNumber();
  LS_ASSIGN_OR_RETURN(one.stop_strings, ReadStopStrings(request, model, limits));
  LS_ASSIGN_OR_RETURN(one.session, ReadSession(request.has_session() ? &request.session() : nullptr));
  if (one.session.has_value() && completions > 1) {
    return FieldError("completions", completions, "1 with a session, which goes on from one end");
  }
  if (request.has_prompt() || !one.session.has_value()) {
    LS_ASSIGN_OR_RETURN(one.prompt, ReadInput(request.prompt(), "prompt", EncoderOf(model), limits.prompt_tokens));
  }

  GenerationPlan plan;
  plan.seed = one.sampling.seed;
  plan.return_raw = request.return_raw();
  // A model without vocabulary has no text: its ids are the answer.
  plan.describe_tokens = request.token_log_probabilities() || model.tokenizer == nullptr;
  plan.describe_prompt = plan.describe_tokens && request.echo();
  if (request.echo()) plan.echo = DecodeTokens(one.prompt, model);
  one.log_probabilities = plan.describe_tokens;
  one.prompt_log_probabilities = plan.describe_prompt;
  one.top_alternatives = plan.describe_tokens ? request.top_alternatives() : 0;

  plan.requests.push_back(std::move(one));
  LS_RETURN_IF_ERROR(CheckTotals(request, plan, completions, limits));
  while (static_cast<int64_t>(plan.requests.size()) < completions) {
    plan.requests.push_back(plan.requests.front());
    plan.requests.back().sampling.completion = static_cast<uint32_t>(plan.requests.size() - 1);
  }
  return plan;
}

absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits) {
  const auto completions = static_cast<int64_t>(plan.requests.size());
  return CheckFieldRange("max_tokens times completions (GenerateStream takes more)",
                         plan.requests.front().max_tokens * completions, 1, limits.answer_tokens);
}

}  // namespace longshort
