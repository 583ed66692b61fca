#include "server/requests/score_request.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/requests/field_error.h"
#include "server/requests/input_reader.h"

namespace longshort {

absl::StatusOr<std::vector<ScoringRequest>> ReadScoreRequest(const v1::ScoreTextRequest& request,
                                                             const ServedLanguageModel& model,
                                                             const RequestLimits& limits,
                                                             const RequestContext& context) {
  LS_RETURN_IF_ERROR(CheckFieldRange("number of inputs", request.inputs_size(), 1, limits.inputs));
  LS_RETURN_IF_ERROR(CheckFieldRange("top_alternatives", request.top_alternatives(), 0, limits.top_alternatives));

  std::vector<ScoringRequest> documents;
  int64_t tokens = 0;
  for (int i = 0; i < request.inputs_size(); ++i) {
    ScoringRequest document;
    document.context = context;
    document.log_probabilities = request.token_log_probabilities();
    document.top_alternatives = request.token_log_probabilities() ? request.top_alternatives() : 0;
    LS_ASSIGN_OR_RETURN(document.tokens, ReadInput(request.inputs(i), absl::StrCat("inputs[", i, "]"), EncoderOf(model),
                                                   limits.prompt_tokens));
    tokens += static_cast<int64_t>(document.tokens.size());
    documents.push_back(std::move(document));
  }
  if (request.token_log_probabilities()) {
    LS_RETURN_IF_ERROR(CheckFieldRange("number of tokens to return (log-probabilities, times 1 + top_alternatives)",
                                       tokens * (1 + request.top_alternatives()), 0, limits.described_tokens));
  }
  return documents;
}

}  // namespace longshort
