// Labelled documents as a text classifier takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/weights/text_classifier_config.h"

namespace longshort {

struct TokenisedTexts {
  std::vector<TokenItem> items;
  std::vector<int64_t> targets;  // [items]: classes

  int64_t size() const { return static_cast<int64_t>(items.size()); }
  // Tokens of an item, all documents together.
  int64_t Tokens(int64_t item) const;
};

// Reads labelled texts (labelled_texts.h) and tokenises them; documents longer than the model takes are cut at their
// end, as a request with `truncate` is. If `labels` is empty, it is set to the texts'. `name` is the file's.
// Errors: those of reading and tokenising, and INVALID_ARGUMENT for an unknown label or a document without tokens; all
// name the file.
absl::StatusOr<TokenisedTexts> TokeniseTexts(std::string_view lines, const std::string& name,
                                             const TextClassifierConfig& config, const DocumentTokenizer& tokenizer,
                                             std::vector<std::string>& labels);

}  // namespace longshort
