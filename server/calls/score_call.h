// Scoring of texts by a language model, or their classification by a classifier: calls and results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/registry/served_model.h"
#include "core/requests/language_model_requests.h"
#include "core/sampling/sampler.h"
#include "core/session/session.h"
#include "server/calls/call_parts.h"
#include "server/calls/classifier_calls.h"

namespace longshort::server {

struct ScoreOptions {
  // For language models.
  bool token_log_probabilities = false;
  int64_t top_alternatives = 0;
  // For classifiers.
  bool truncate = false;
  ClassOptions classes = {};
  // If set, documents are embedded, not classified.
  std::optional<EmbedOptions> embedding = std::nullopt;
};

struct ScoreCall {
  ModelReference model = {};
  std::vector<TextInput> texts = {};
  // For classifiers of pairs: one for each of `texts`. Otherwise empty.
  std::vector<TextInput> second_texts = {};
  ScoreOptions options = {};
  std::optional<core::SessionReference> session = std::nullopt;
};

// Options for all documents of a stream.
struct ScoreStreamOptions {
  ModelReference model = {};
  ScoreOptions scoring;
  bool keep_alives = false;  // whether the silent stream sends keepalives
};

// One document of a stream.
struct StreamedText {
  uint64_t id = 0;  // chosen by the client and repeated in the answer
  TextInput text = {};
  std::optional<TextInput> second_text = std::nullopt;  // for classifiers of pairs
  // Set in the first message only. Unset: the defaults.
  std::optional<ScoreStreamOptions> options = std::nullopt;
};

struct TextScore {
  double log_likelihood = 0;  // nats
  int64_t token_count = 0;
  int64_t scored_token_count = 0;
  // At most one is set, and only if tokens were scored: bits per character if the vocabulary is of characters.
  std::optional<double> bits_per_byte = std::nullopt;
  std::optional<double> bits_per_character = std::nullopt;
  // [scored_token_count], if requested.
  std::vector<core::GeneratedToken> tokens = {};
  core::RequestTimings timings = {};
  std::optional<int64_t> session_tokens = std::nullopt;
};

struct TextClassification {
  Classification classification;
  std::vector<DocumentReading> documents;
};

using TextResult = std::variant<TextScore, TextClassification, Embedding>;

struct ScoredText {
  TextResult result;
  int64_t tokens = 0;
  int64_t cached_tokens = 0;
};

struct ScoreResult {
  std::vector<ScoredText> texts;  // in request order
  Usage usage;
  ModelReference model = {};
  // Owns the labels and the vocabulary of the results. Null for embeddings, which have neither.
  std::shared_ptr<const core::ServedModel> served;
};

}  // namespace longshort::server
