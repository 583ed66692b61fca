// Generation: the call, its unary and its streamed answer; and the tokenization of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/requests/language_model_requests.h"
#include "core/sampling/sampler.h"
#include "core/session/session.h"
#include "models/tokenizer/tokenizer.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

struct GenerateCall {
  ModelReference model = {};
  // Each has its own completions: first those of the first prompt. With a session at most one; it may have none.
  std::vector<TextInput> prompts = {};
  int64_t max_tokens = 0;   // 0: the default
  int64_t completions = 0;  // of each prompt; 0 means 1
  // The client's values, unchecked. `seed` replaces sampling.seed.
  core::SamplingOptions sampling = {};
  std::optional<uint64_t> seed = std::nullopt;  // unset: random
  std::vector<std::string> stop = {};
  bool token_log_probabilities = false;
  int64_t top_alternatives = 0;
  bool echo = false;
  bool return_raw = false;
  std::optional<core::SessionReference> session = std::nullopt;
  bool keep_partial = false;  // only with a session
};

struct Completion {
  std::string text;  // UTF-8
  std::string raw;   // the bytes that `text` was decoded from, if requested
  std::vector<core::GeneratedToken> tokens;
  core::FinishReason finish_reason = core::FinishReason::kMaxTokens;
  std::string stop;  // the stop string that ended the completion, if any
  core::RequestTimings timings;
};

struct GenerateResult {
  std::vector<Completion> completions;  // in index order
  Usage usage;
  uint64_t seed = 0;
  std::optional<int64_t> session_tokens = std::nullopt;
  ModelReference model = {};
  // Decodes the tokens; null if the model has no vocabulary.
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

// The events of a streamed generation: the start, then deltas and keepalives, one end for each completion, and the
// summary.
struct StreamStart {
  ModelReference model = {};
  uint64_t seed = 0;
  // As in GenerateResult.
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

struct CompletionDelta {
  int32_t index = 0;
  std::string text;  // UTF-8; the bytes of an incomplete character come with a later delta
  std::string raw;
  std::vector<core::GeneratedToken> tokens;
  int64_t token_count = 0;     // number of generated tokens that the delta covers
  int64_t session_tokens = 0;  // as GenerationDelta
};

struct CompletionEnd {
  int32_t index = 0;
  core::FinishReason finish_reason = core::FinishReason::kMaxTokens;
  std::string stop;
  core::RequestTimings timings;
};

struct StreamSummary {
  Usage usage;
  std::optional<int64_t> session_tokens = std::nullopt;
};

// Sent when the stream was silent for CallEnvironment::keepalive_interval.
struct KeepAlive {};

using StreamEvent = std::variant<StreamStart, CompletionDelta, CompletionEnd, StreamSummary, KeepAlive>;

struct TokenizeCall {
  ModelReference model = {};
  TextInput text = {};
};

struct TokenizeResult {
  std::vector<int32_t> ids;
  ModelReference model = {};
  // Decodes the ids; null for a model without vocabulary.
  std::shared_ptr<const models::TextEncoder> tokenizer;
  // The places of the ids in the text; empty if the input is ids.
  std::vector<models::TokenSpan> spans = {};
};

}  // namespace longshort::server
