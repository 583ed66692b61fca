// Turns what the engine tells of one completion into messages: bytes to text that is valid UTF-8 in every piece, tokens
// with the bytes that they stand for, the prompt in front if echo was asked for.
//
// Thread: one at a time (the engine's).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/registry/model_registry.h"
#include "core/requests/generation_request.h"
#include "core/sampling/token_log_probability.h"
#include "core/text/utf8_stream.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/generate_request.h"

namespace longshort {

class CompletionTranslator {
 public:
  // `model` must outlive this. Of `plan`, only what the client asked to see is kept.
  CompletionTranslator(int32_t index, const ServedLanguageModel& model, const GenerationPlan& plan);

  // The echoed prompt in pieces of at most 32 KiB (nothing without echo), and its tokens' log-probabilities in pieces.
  std::vector<v1::CompletionDelta> Echo(const std::string& prompt);
  std::vector<v1::CompletionDelta> PromptTokens(const std::vector<GeneratedToken>& tokens) const;

  // Text may be empty: a character that is not whole yet waits.
  v1::CompletionDelta Delta(const GenerationDelta& delta);
  // The end: what text was held back (empty if none), then how it ended.
  v1::CompletionDelta Rest();
  v1::CompletionEnd End(const GenerationSummary& summary) const;

 private:
  v1::CompletionDelta NewText(const std::string& bytes);

  const int32_t index_;
  const ServedLanguageModel& model_;
  const bool describe_tokens_;
  const bool return_raw_;
  Utf8Stream text_;
};

}  // namespace longshort
