#include "models/train/tokenised_texts.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/images/image_preprocessor.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

absl::StatusOr<std::vector<DocumentBeginning>> Beginnings(const LabelledExample& text,
                                                          const TextClassifierConfig& config,
                                                          const TextEncoder& tokenizer) {
  std::vector<DocumentBeginning> documents;
  for (const std::string& document : text.content) {
    absl::StatusOr<DocumentBeginning> ids = tokenizer.EncodeBeginning(document, config.MaxDocumentTokens());
    if (!ids.ok()) return Named(text.place, ids.status());
    if (std::all_of(ids->ids.begin(), ids->ids.end(), [&](int32_t id) { return id == config.padding_id; })) {
      return absl::InvalidArgumentError(absl::StrCat(text.place, ": the text is empty, or has only padding"));
    }
    documents.push_back(*std::move(ids));
  }
  const int64_t max_tokens = config.MaxDocumentTokens();
  if (config.JoinsPairs() && documents.size() == 2) {
    if (max_tokens < 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(text.place, ": a pair has at least 4 tokens, but max_document_tokens is ", max_tokens));
    }
    const auto separator = static_cast<int32_t>(config.separator_id);
    documents = {JoinPair(documents[0], documents[1], separator, max_tokens)};
  }
  return documents;
}

}  // namespace

int64_t TokenisedTexts::Tokens(int64_t item) const {
  size_t tokens = 0;
  for (const std::vector<int32_t>& document : items[item].documents) tokens += document.size();
  return static_cast<int64_t>(tokens);
}

absl::StatusOr<TokenisedTexts> PixelSequences(absl::Span<const LabelledExample> images,
                                              const TextClassifierConfig& config) {
  const std::unique_ptr<ImagePreprocessor> preprocessor = MakePixelSequencePreprocessor(config.preprocessing, {});
  TokenisedTexts sequences;
  sequences.longest = config.preprocessing.height * config.preprocessing.width;
  for (const LabelledExample& image : images) {
    absl::StatusOr<ClassifierItem> item = preprocessor->Decode(image.content.front());
    if (!item.ok()) return Named(image.place, item.status());
    sequences.items.push_back(std::get<TokenItem>(*std::move(item)));
  }
  return sequences;
}

absl::StatusOr<TokenisedTexts> TokeniseTexts(absl::Span<const LabelledExample> texts,
                                             const TextClassifierConfig& config, const TextEncoder& tokenizer) {
  TokenisedTexts tokenised;
  for (const LabelledExample& text : texts) {
    LS_ASSIGN_OR_RETURN(std::vector<DocumentBeginning> documents, Beginnings(text, config, tokenizer));
    TokenItem& item = tokenised.items.emplace_back();
    bool is_cut = false;
    for (DocumentBeginning& document : documents) {
      is_cut = is_cut || document.tokens > std::ssize(document.ids);
      tokenised.longest = std::max(tokenised.longest, document.tokens);
      item.documents.push_back(std::move(document.ids));
    }
    tokenised.cut += is_cut ? 1 : 0;
  }
  return tokenised;
}

}  // namespace longshort::models
