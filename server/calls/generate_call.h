// Generation: the call, its answer, whole or streamed, and the tokenizing of a text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/requests/generation_request.h"
#include "core/requests/request_timings.h"
#include "core/sampling/log_probabilities.h"
#include "core/sampling/sampling_options.h"
#include "core/session/session.h"
#include "models/tokenizer/tokenizer.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

struct GenerateCall {
  ModelReference model = {};
  // May be missing behind a session.
  std::optional<TextInput> prompt = std::nullopt;
  int64_t max_tokens = 0;   // 0 takes the default
  int64_t completions = 0;  // 0 means 1
  // As the client says, unchecked; `seed` instead of sampling.seed.
  core::SamplingOptions sampling = {};
  std::optional<uint64_t> seed = std::nullopt;  // drawn if unset
  std::vector<std::string> stop = {};
  bool token_log_probabilities = false;
  int64_t top_alternatives = 0;
  bool echo = false;
  bool return_raw = false;
  std::optional<core::SessionReference> session = std::nullopt;
};

struct Completion {
  std::string text;  // UTF-8
  std::string raw;   // the bytes behind it, if asked for
  std::vector<core::GeneratedToken> tokens;
  core::FinishReason finish_reason = core::FinishReason::kMaxTokens;
  std::string stop;  // the stop string that was met, if one was
  core::RequestTimings timings;
};

struct GenerateResult {
  std::vector<Completion> completions;  // by index
  Usage usage;
  uint64_t seed = 0;
  std::optional<int64_t> session_tokens = std::nullopt;
  ModelReference model = {};
  // What the tokens stand for; null for a model without vocabulary.
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

// What a streamed generation says: the start, any mix of the others, an end for each completion, and the summary.
struct StreamStart {
  ModelReference model = {};
  uint64_t seed = 0;
  // As GenerateResult's.
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

struct CompletionDelta {
  int32_t index = 0;
  std::string text;  // UTF-8: bytes of a character that is not whole yet wait
  std::string raw;
  std::vector<core::GeneratedToken> tokens;
  int64_t token_count = 0;  // generated tokens that it stands for
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

// Said when nothing else was for a while.
struct KeepAlive {};

using StreamEvent = std::variant<StreamStart, CompletionDelta, CompletionEnd, StreamSummary, KeepAlive>;

struct TokenizeCall {
  ModelReference model = {};
  TextInput text = {};
};

struct TokenizeResult {
  std::vector<int32_t> ids;
  ModelReference model = {};
  // What the ids stand for; null for a classifier, and for a model without vocabulary.
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

}  // namespace longshort::server
