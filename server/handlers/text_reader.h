// Texts, bytes or ids of a call as token ids of a model.
//
// Thread: free functions without state; they run on the front's threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "server/calls/call_names.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// The ids of a served model, and how they come from text. Valid as long as the model.
struct TextVocabulary {
  TextVocabulary(const core::ServedLanguageModel& model)
      : size(model.info.vocabulary_size), encoder(model.tokenizer.get()) {}
  // REQUIRES: a classifier of texts.
  TextVocabulary(const core::ServedClassifier& model)
      : size(model.info.vocabulary_size), encoder(model.tokenizer.get()) {}

  int64_t size;
  const models::TextEncoder* encoder;  // null for a model that takes ids only
};

// Which text of a call is read, for messages.
struct NamedText {
  TextInput input;
  FieldPath path;
};

// The tokens of `text`, 1 to `max_tokens` of them, each in [0, V).
// Errors: INVALID_ARGUMENT if it is empty, too long, has an id outside the vocabulary (with its index) or a byte or
// character outside the vocabulary (with its offset), or is text for a model that takes ids only.
absl::StatusOr<std::vector<int32_t>> ReadText(const NamedText& text, const CallNames& names,
                                              const TextVocabulary& vocabulary, int64_t max_tokens);
// The first `max_tokens` tokens of `text`, or all of them, and how many there are: at least one.
// Errors: as ReadText, but for a text that is too long.
absl::StatusOr<models::DocumentBeginning> ReadBeginning(const NamedText& text, const CallNames& names,
                                                        const TextVocabulary& vocabulary, int64_t max_tokens);

// The bytes that the tokens stand for; empty for a model that takes ids only.
std::string DecodeTokens(const std::vector<int32_t>& tokens, const core::ServedLanguageModel& model);

}  // namespace longshort::server
