// Labelled texts, or images, as the input of a text classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/tokenizer/tokenizer.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

struct TokenisedTexts {
  std::vector<TokenItem> items;
  int64_t cut = 0;      // items of which the model reads only the beginning
  int64_t longest = 0;  // tokens of the longest document

  int64_t size() const { return static_cast<int64_t>(items.size()); }
  // Number of tokens of all documents of an item.
  int64_t Tokens(int64_t item) const;
};

// The grey values of images, as the server reads them for a model whose tokenizer is `pixels`. Errors: those of
// decoding, naming the image's place.
absl::StatusOr<TokenisedTexts> PixelSequences(absl::Span<const LabelledExample> images,
                                              const TextClassifierConfig& config);

// Tokenises texts. A document that is longer than the model's maximum is cut at its end, as for a request with
// `truncate`. A pair is joined to one document if the model does that. Errors: those of tokenising; INVALID_ARGUMENT
// for a document without tokens. All name the text's place.
absl::StatusOr<TokenisedTexts> TokeniseTexts(absl::Span<const LabelledExample> texts,
                                             const TextClassifierConfig& config, const TextEncoder& tokenizer);

}  // namespace longshort::models
