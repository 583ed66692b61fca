#include "models/train/tokenised_texts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/train/class_labels.h"
#include "models/train/labelled_texts.h"

namespace longshort {
namespace {

absl::StatusOr<TokenItem> Tokenise(const LabelledText& text, const TextClassifierConfig& config,
                                   const DocumentTokenizer& tokenizer, const std::string& name) {
  TokenItem item;
  for (const std::string& document : text.documents) {
    absl::StatusOr<std::vector<int32_t>> ids = tokenizer.Encode(document);
    if (!ids.ok()) return absl::Status(ids.status().code(), absl::StrCat(name, ": ", ids.status().message()));
    if (static_cast<int64_t>(ids->size()) > config.MaxDocumentTokens()) ids->resize(config.MaxDocumentTokens());
    if (std::all_of(ids->begin(), ids->end(), [](int32_t id) { return id == 0; })) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": a document has no token"));
    }
    item.documents.push_back(*std::move(ids));
  }
  return item;
}

}  // namespace

int64_t TokenisedTexts::Tokens(int64_t item) const {
  size_t tokens = 0;
  for (const std::vector<int32_t>& document : items[item].documents) tokens += document.size();
  return static_cast<int64_t>(tokens);
}

absl::StatusOr<TokenisedTexts> TokeniseTexts(std::string_view lines, const std::string& name,
                                             const TextClassifierConfig& config, const DocumentTokenizer& tokenizer,
                                             std::vector<std::string>& labels) {
  LS_ASSIGN_OR_RETURN(const std::vector<LabelledText> texts, ParseLabelledTexts(lines, config.documents, name));
  if (labels.empty()) {
    labels = LabelsOf(texts);
    LS_RETURN_IF_ERROR(CheckLabelCount(labels, config.classes, name));
  }
  TokenisedTexts tokenised;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string item_name = absl::StrCat(name, ":", texts[i].line);
    LS_ASSIGN_OR_RETURN(const int64_t target, ClassOf(labels, texts[i].label, item_name));
    LS_ASSIGN_OR_RETURN(TokenItem item, Tokenise(texts[i], config, tokenizer, item_name));
    tokenised.items.push_back(std::move(item));
    tokenised.targets.push_back(target);
  }
  return tokenised;
}

}  // namespace longshort
