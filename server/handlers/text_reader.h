// Converts the text, bytes or ids of a call to token ids of a model.
//
// Thread: stateless free functions, which run on gRPC's threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// A served model's vocabulary size and encoder. Valid as long as the model.
struct TextVocabulary {
  TextVocabulary(const core::ServedLanguageModel& model)
      : size(model.info.vocabulary_size), encoder(model.tokenizer.get()) {}
  // REQUIRES: a classifier of texts.
  TextVocabulary(const core::ServedClassifier& model)
      : size(model.info.vocabulary_size), encoder(model.tokenizer.get()) {}

  int64_t size;
  const models::TextEncoder* encoder;  // null for a model that takes ids only
};

// A text of a call with its field, for messages.
struct NamedText {
  TextInput input;
  FieldPath path;
};

// The tokens of `text`: 1 to `max_tokens` ids in [0, V).
// Errors: INVALID_ARGUMENT if it is empty, too long, has an id outside the vocabulary (with its index) or a byte or
// character outside the vocabulary (with its offset), or is text for a model that takes ids only.
absl::StatusOr<std::vector<int32_t>> ReadText(const NamedText& text, const CallNames& names,
                                              const TextVocabulary& vocabulary, int64_t max_tokens);
// The first `max_tokens` tokens of `text`, or all if there are fewer, and the total number, which is at least 1.
// Errors: those of ReadText, except that a long text is no error.
absl::StatusOr<models::DocumentBeginning> ReadBeginning(const NamedText& text, const CallNames& names,
                                                        const TextVocabulary& vocabulary, int64_t max_tokens);

// The bytes that the tokens stand for; empty for a model that takes ids only.
std::string DecodeTokens(const std::vector<int32_t>& tokens, const core::ServedLanguageModel& model);

}  // namespace longshort::server
