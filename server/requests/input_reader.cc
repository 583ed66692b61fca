#include "server/requests/input_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/field_error.h"

namespace longshort {
namespace {

absl::StatusOr<DocumentBeginning> ReadIds(const v1::TokenIds& ids, const std::string& field, int64_t vocabulary_size,
                                          int64_t most) {
  for (int i = 0; i < ids.ids_size(); ++i) {
    if (ids.ids(i) >= 0 && ids.ids(i) < vocabulary_size) continue;  // there may be millions: only a wrong one is named
    return CheckFieldRange(absl::StrCat(field, ".ids.ids[", i, "]"), ids.ids(i), 0, vocabulary_size - 1);
  }
  const int64_t tokens = ids.ids_size();
  return DocumentBeginning{.ids = {ids.ids().begin(), ids.ids().begin() + std::min(tokens, most)}, .tokens = tokens};
}

absl::StatusOr<DocumentBeginning> ReadText(const std::string& text, const std::string& field,
                                           const TextEncoder& encoder, int64_t most) {
  if (encoder.encode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is text; it must be ids, because the model has no vocabulary"));
  }
  absl::StatusOr<DocumentBeginning> beginning = encoder.encode(text, most);
  if (beginning.ok()) return beginning;
  return absl::Status(beginning.status().code(), absl::StrCat(field, ": ", beginning.status().message()));
}

absl::StatusOr<DocumentBeginning> ReadKind(const v1::Input& input, const std::string& field, const TextEncoder& encoder,
                                           int64_t most) {
  switch (input.kind_case()) {
    case v1::Input::kText:
      return ReadText(input.text(), absl::StrCat(field, ".text"), encoder, most);
    case v1::Input::kRaw:
      return ReadText(input.raw(), absl::StrCat(field, ".raw"), encoder, most);
    case v1::Input::kIds:
      return ReadIds(input.ids(), field, encoder.vocabulary_size, most);
    case v1::Input::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " is unset; it must have text, raw or ids"));
}

}  // namespace

TextEncoder EncoderOf(const ServedLanguageModel& model) {
  TextEncoder encoder{.vocabulary_size = model.info.vocabulary_size, .encode = nullptr};
  if (model.tokenizer == nullptr) return encoder;
  encoder.encode = [&tokenizer = *model.tokenizer](const std::string& text,
                                                   int64_t most) -> absl::StatusOr<DocumentBeginning> {
    LS_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.Encode(text));
    const auto tokens = static_cast<int64_t>(ids.size());
    if (tokens > most) ids.resize(most);
    ids.shrink_to_fit();
    return DocumentBeginning{.ids = std::move(ids), .tokens = tokens};
  };
  return encoder;
}

TextEncoder EncoderOf(const ServedClassifier& model) {
  TextEncoder encoder{.vocabulary_size = model.info.vocabulary_size, .encode = nullptr};
  if (model.tokenizer == nullptr) return encoder;
  encoder.encode = [&tokenizer = *model.tokenizer](const std::string& text, int64_t most) {
    return tokenizer.EncodeBeginning(text, most);
  };
  return encoder;
}

absl::StatusOr<std::vector<int32_t>> ReadInput(const v1::Input& input, const std::string& field,
                                               const TextEncoder& encoder, int64_t most_tokens) {
  LS_ASSIGN_OR_RETURN(DocumentBeginning beginning, ReadBeginning(input, field, encoder, most_tokens));
  LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of tokens of ", field), beginning.tokens, 1, most_tokens));
  return std::move(beginning.ids);
}

absl::StatusOr<DocumentBeginning> ReadBeginning(const v1::Input& input, const std::string& field,
                                                const TextEncoder& encoder, int64_t most_tokens) {
  LS_ASSIGN_OR_RETURN(DocumentBeginning beginning, ReadKind(input, field, encoder, most_tokens));
  if (beginning.tokens > 0) return beginning;
  return absl::InvalidArgumentError(absl::StrCat(field, " is empty; it must have at least one token"));
}

std::string DecodeTokens(const std::vector<int32_t>& tokens, const ServedLanguageModel& model) {
  std::string bytes;
  if (model.tokenizer == nullptr) return bytes;
  for (const int32_t token : tokens) bytes += model.tokenizer->Decode(token);
  return bytes;
}

}  // namespace longshort
