// Turns the engine's output for one completion into events: bytes become text of which each piece is valid UTF-8, an
// echoed prompt comes first, and tokens are described if requested.
//
// Thread: one at a time (the engine's).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "core/requests/language_model_requests.h"
#include "core/sampling/sampler.h"
#include "server/calls/generate_call.h"
#include "server/handlers/generation_plan.h"

namespace longshort::server {

// Converts a stream of bytes to text that is valid UTF-8 in every piece.
//
// Holds back the bytes of an incomplete character. Bytes that are not UTF-8 become U+FFFD, one for each maximal
// subpart: the longest beginning of a well-formed character, or else a single byte (Unicode 15, section 3.9, the
// practice of the WHATWG decoder). The text does not depend on how the bytes are divided into pieces.
class Utf8Stream {
 public:
  // Appends bytes and returns the text that they complete.
  std::string Append(std::string_view bytes);
  // At the end: U+FFFD if a character is incomplete, otherwise "".
  std::string Flush();

 private:
  void AppendByte(char byte, std::string& text);

  Utf8Decoder decoder_;
  std::string held_;  // the beginning of a character
};

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
