// Turns what the engine tells of one completion into events: bytes to text that is valid UTF-8 in every piece, the
// prompt in front if echo was asked for, tokens only where they are.
//
// Thread: one at a time (the engine's).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/requests/generation_request.h"
#include "core/sampling/log_probabilities.h"
#include "core/sampling/utf8_stream.h"
#include "server/calls/generate_call.h"
#include "server/handlers/generation_plan.h"

namespace longshort::server {

class CompletionTranslator {
 public:
  // Of `plan`, only what the client asked to see is kept.
  CompletionTranslator(int32_t index, const GenerationPlan& plan);

  // The echoed prompt in pieces of at most 32 KiB (nothing without echo), and its tokens' log-probabilities in pieces.
  std::vector<CompletionDelta> Echo(const std::string& prompt);
  std::vector<CompletionDelta> PromptTokens(std::vector<core::GeneratedToken> tokens) const;

  // Text may be empty: a character that is not whole yet waits.
  CompletionDelta Delta(core::GenerationDelta generated);
  // The end: what text was held back (empty if none), then how it ended.
  CompletionDelta Rest();
  CompletionEnd End(const core::GenerationSummary& summary) const;

 private:
  CompletionDelta NewText(std::string bytes);

  const int32_t index_;
  const bool describe_tokens_;
  const bool return_raw_;
  core::Utf8Stream text_;
};

}  // namespace longshort::server
