#include "server/handlers/text_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"

namespace longshort::server {
namespace {

std::string NameOf(const NamedText& text, TextPart part, const CallNames& names) {
  FieldPath path = text.path;
  path.part = part;
  return names.Of(path);
}

absl::StatusOr<models::DocumentBeginning> ReadIds(const NamedText& text, const CallNames& names,
                                                  int64_t vocabulary_size, int64_t max) {
  const absl::Span<const int32_t> ids = text.input.ids;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary_size) continue;
    FieldPath path = text.path;
    path.part = TextPart::kIds;
    path.id_index = static_cast<int64_t>(i);
    return CheckFieldRange([&] { return names.Of(path); }, ids[i], 0, vocabulary_size - 1);
  }
  const auto tokens = static_cast<int64_t>(ids.size());
  return models::DocumentBeginning{.ids = {ids.begin(), ids.begin() + std::min(tokens, max)}, .tokens = tokens};
}

absl::StatusOr<models::DocumentBeginning> Encode(const NamedText& text, TextPart part, const CallNames& names,
                                                 const TextVocabulary& vocabulary, int64_t max) {
  if (vocabulary.encoder == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(text, part, names), " is text; it must be ids, because the model has no vocabulary"));
  }
  absl::StatusOr<models::DocumentBeginning> beginning = vocabulary.encoder->EncodeBeginning(text.input.text, max);
  if (beginning.ok()) return beginning;
  return absl::Status(beginning.status().code(),
                      absl::StrCat(NameOf(text, part, names), ": ", beginning.status().message()));
}

absl::StatusOr<models::DocumentBeginning> ReadKind(const NamedText& text, const CallNames& names,
                                                   const TextVocabulary& vocabulary, int64_t max) {
  switch (text.input.kind) {
    case TextInput::Kind::kText:
      return Encode(text, TextPart::kText, names, vocabulary, max);
    case TextInput::Kind::kBytes:
      return Encode(text, TextPart::kBytes, names, vocabulary, max);
    case TextInput::Kind::kIds:
      return ReadIds(text, names, vocabulary.size, max);
    case TextInput::Kind::kUnset:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(names.Of(text.path), " is unset; it must have ", names.text_kinds()));
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadText(const NamedText& text, const CallNames& names,
                                              const TextVocabulary& vocabulary, int64_t max_tokens) {
  LS_ASSIGN_OR_RETURN(models::DocumentBeginning beginning, ReadBeginning(text, names, vocabulary, max_tokens));
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of tokens of ", names.Of(text.path)); },
                                     beginning.tokens, 1, max_tokens));
  return std::move(beginning.ids);
}

absl::StatusOr<models::DocumentBeginning> ReadBeginning(const NamedText& text, const CallNames& names,
                                                        const TextVocabulary& vocabulary, int64_t max_tokens) {
  LS_ASSIGN_OR_RETURN(models::DocumentBeginning beginning, ReadKind(text, names, vocabulary, max_tokens));
  if (beginning.tokens > 0) return beginning;
  return absl::InvalidArgumentError(absl::StrCat(names.Of(text.path), " is empty; it must have at least one token"));
}

std::string DecodeTokens(const std::vector<int32_t>& tokens, const core::ServedLanguageModel& model) {
  std::string bytes;
  if (model.tokenizer == nullptr) return bytes;
  for (const int32_t token : tokens) bytes += model.tokenizer->Decode(token);
  return bytes;
}

}  // namespace longshort::server
