// Turns the engine's output for one completion into events: bytes become text of which each piece is valid UTF-8, an
// echoed prompt comes first, and tokens are described if requested.
//
// Thread: one at a time (the engine's).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/requests/language_model_requests.h"
#include "core/sampling/log_probabilities.h"
#include "server/calls/generate_call.h"
#include "server/handlers/generation_plan.h"
#include "server/handlers/utf8_stream.h"

namespace longshort::server {

class CompletionTranslator {
 public:
  // Keeps from `plan` only what the client requested.
  CompletionTranslator(int32_t index, const GenerationPlan& plan);

  // The echoed prompt in pieces of at most 32 KiB (none without echo), and its tokens' log-probabilities in pieces.
  std::vector<CompletionDelta> Echo(const std::string& prompt);
  std::vector<CompletionDelta> PromptTokens(std::vector<core::GeneratedToken> tokens) const;

  // The text may be empty, because an incomplete character is held back.
  CompletionDelta Delta(core::GenerationDelta generated);
  // The end of the completion: the text that was held back (empty if none), and the finish reason.
  CompletionDelta Rest();
  CompletionEnd End(const core::GenerationSummary& summary) const;

 private:
  CompletionDelta NewText(std::string bytes);

  const int32_t index_;
  const bool describe_tokens_;
  const bool return_raw_;
  Utf8Stream text_;
};

}  // namespace longshort::server
