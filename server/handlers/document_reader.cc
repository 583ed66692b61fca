#include "server/handlers/document_reader.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/tokenizer/sequence_pair.h"
#include "server/calls/field_error.h"

namespace longshort::server {
namespace {

using models::DocumentBeginning;

// `max`: tokens of the document, or of the pair, whose `name` this is.
absl::Status CheckTokens(std::string_view name, int64_t tokens, int64_t max, bool truncate, const CallNames& names) {
  if (tokens <= max || truncate) return absl::OkStatus();
  return FieldError(
      absl::StrCat("number of tokens of ", std::string(name)), tokens,
      absl::StrCat("in [1, ", max, "] (more with ", names.Of("truncate"), ", which reads the first ", max, ")"));
}

// Errors: INVALID_ARGUMENT unless the ids of `name` begin as those of every text of the model do. Ids of another
// tokenizer would give a meaningless result.
absl::Status CheckFirst(const core::ServedClassifier& model, int32_t id, const std::string& name) {
  if (model.tokenizer == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const DocumentBeginning begin, model.tokenizer->EncodeBeginning("", 1));
  if (begin.ids.empty() || id == begin.ids.front()) return absl::OkStatus();
  return FieldError(
      absl::StrCat("the first id of ", name), id,
      absl::StrCat(begin.ids.front(), " (", std::string(model.tokenizer->Decode(begin.ids.front())),
                   "), as in the ids that Tokenize returns; send ids of this model's tokenizer, or text"));
}

// Errors: INVALID_ARGUMENT if a pair, longer than `max` together, cannot be truncated to it.
absl::Status CheckPair(int64_t max, std::string_view name, const DocumentBeginning& first,
                       const DocumentBeginning& second) {
  constexpr int64_t kBeginAndEnd = 2;
  if (max >= 2 * kBeginAndEnd && std::min(first.tokens, second.tokens) >= kBeginAndEnd) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(name), " cannot be truncated to ", max,
                                                 " tokens: each keeps its first and its last token"));
}

}  // namespace

absl::StatusOr<TextToScore> ReadDocuments(const core::ServedClassifier& model, bool truncate, const CallNames& names,
                                          absl::Span<const NamedText> documents) {
  const models::ClassifierInfo& info = model.info;
  const int64_t max = info.max_document_tokens;
  std::vector<DocumentBeginning> read;
  for (const NamedText& named : documents) {
    // The last id of a sequence is kept, so ids are read to their end.
    const bool to_end = info.joins_pairs && named.input.kind == TextInput::Kind::kIds;
    LS_ASSIGN_OR_RETURN(DocumentBeginning document,
                        ReadBeginning(named, names, model, to_end ? std::numeric_limits<int64_t>::max() : max));
    if (to_end) LS_RETURN_IF_ERROR(CheckFirst(model, document.ids.front(), names.Of(named.path)));
    read.push_back(std::move(document));
  }
  std::vector<int64_t> limits(read.size(), max);  // of each document's ids
  if (info.joins_pairs && read.size() == 2) {
    const std::string name = absl::StrCat(names.Of(documents[0].path), " and ", names.Of(documents[1].path));
    const int64_t tokens = read[0].tokens + read[1].tokens;
    LS_RETURN_IF_ERROR(CheckTokens(name, tokens, max, truncate, names));
    if (tokens > max) {
      LS_RETURN_IF_ERROR(CheckPair(max, name, read[0], read[1]));
      std::tie(limits[0], limits[1]) = models::KeptOfPair(read[0].tokens, read[1].tokens, max);
    }
  }
  TextToScore text;
  for (size_t i = 0; i < read.size(); ++i) {
    std::vector<int32_t>& ids = read[i].ids;
    LS_RETURN_IF_ERROR(CheckTokens(names.Of(documents[i].path), read[i].tokens, max, truncate, names));
    if (static_cast<int64_t>(ids.size()) > limits[i]) {
      const int32_t last = ids.back();
      ids.resize(limits[i]);
      ids.back() = last;
    }
    if (std::all_of(ids.begin(), ids.end(), [&info](int32_t id) { return id == info.padding_id; })) {
      return absl::InvalidArgumentError(absl::StrCat(names.Of(documents[i].path), " is padding (id ", info.padding_id,
                                                     ") alone; it must have at least one other token"));
    }
    ids.shrink_to_fit();
    const auto kept = static_cast<int64_t>(ids.size());
    text.readings.push_back({.token_count = kept, .truncated = kept < read[i].tokens});
    text.documents.push_back(std::move(ids));
  }
  return text;
}

}  // namespace longshort::server
