// How likely a language model finds texts, or which classes a classifier gives them: what is asked, and what is
// answered.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/registry/served_model.h"
#include "core/requests/request_timings.h"
#include "core/sampling/log_probabilities.h"
#include "core/session/session.h"
#include "server/calls/call_parts.h"
#include "server/calls/classify_call.h"

namespace longshort::server {

struct ScoreOptions {
  // Language models.
  bool token_log_probabilities = false;
  int64_t top_alternatives = 0;
  // Classifiers.
  bool truncate = false;
  ClassOptions classes = {};
};

struct ScoreCall {
  ModelReference model = {};
  std::vector<TextInput> texts = {};
  // Classifiers of pairs: as many as `texts`. Empty otherwise.
  std::vector<TextInput> second_texts = {};
  ScoreOptions options = {};
  std::optional<core::SessionReference> session = std::nullopt;
};

// Of all documents of a stream.
struct ScoreStreamOptions {
  ModelReference model = {};
  ScoreOptions scoring;
};

// One document of a stream.
struct StreamedText {
  uint64_t id = 0;  // the client's own: the answer repeats it
  TextInput text = {};
  std::optional<TextInput> second_text = std::nullopt;  // classifiers of pairs
  // In the first message only; unset means the defaults.
  std::optional<ScoreStreamOptions> options = std::nullopt;
};

struct TextScore {
  double log_likelihood = 0;  // nats
  int64_t token_count = 0;
  int64_t scored_token_count = 0;
  // One of them if anything was scored, as the model's vocabulary has it.
  std::optional<double> bits_per_byte = std::nullopt;
  std::optional<double> bits_per_character = std::nullopt;
  // [scored_token_count] if asked for.
  std::vector<core::GeneratedToken> tokens = {};
  core::RequestTimings timings = {};
  std::optional<int64_t> session_tokens = std::nullopt;
};

// A document as it was read.
struct DocumentReading {
  int64_t token_count = 0;
  bool truncated = false;
};

struct TextClassification {
  Classification classification;
  std::vector<DocumentReading> documents;
};

struct ScoredText {
  std::variant<TextScore, TextClassification> result;
  int64_t tokens = 0;
  int64_t cached_tokens = 0;
};

struct ScoreResult {
  std::vector<ScoredText> texts;  // in their order
  Usage usage;
  ModelReference model = {};
  // Whose labels are shown, and whose tokens are named.
  std::shared_ptr<const core::ServedModel> served;
};

}  // namespace longshort::server
