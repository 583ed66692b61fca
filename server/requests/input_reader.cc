#include "server/requests/input_reader.h"

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/requests/field_error.h"

namespace longshort {
namespace {

absl::StatusOr<std::vector<int32_t>> ReadIds(const v1::TokenIds& ids, const std::string& field,
                                             int64_t vocabulary_size) {
  for (int i = 0; i < ids.ids_size(); ++i) {
    if (ids.ids(i) >= 0 && ids.ids(i) < vocabulary_size) continue;  // there may be millions: only a wrong one is named
    return CheckFieldRange(absl::StrCat(field, ".ids.ids[", i, "]"), ids.ids(i), 0, vocabulary_size - 1);
  }
  return std::vector<int32_t>(ids.ids().begin(), ids.ids().end());
}

absl::StatusOr<std::vector<int32_t>> ReadText(const std::string& text, const std::string& field,
                                              const TextEncoder& encoder) {
  if (encoder.encode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is text; it must be ids, because the model has no vocabulary"));
  }
  absl::StatusOr<std::vector<int32_t>> tokens = encoder.encode(text);
  if (!tokens.ok()) {
    return absl::Status(tokens.status().code(), absl::StrCat(field, ": ", tokens.status().message()));
  }
  return tokens;
}

absl::StatusOr<std::vector<int32_t>> ReadKind(const v1::Input& input, const std::string& field,
                                              const TextEncoder& encoder) {
  switch (input.kind_case()) {
    case v1::Input::kText:
      return ReadText(input.text(), absl::StrCat(field, ".text"), encoder);
    case v1::Input::kRaw:
      return ReadText(input.raw(), absl::StrCat(field, ".raw"), encoder);
    case v1::Input::kIds:
      return ReadIds(input.ids(), field, encoder.vocabulary_size);
    case v1::Input::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " is unset; it must have text, raw or ids"));
}

template <typename AnyTokenizer>
TextEncoder EncoderOf(int64_t vocabulary_size, const AnyTokenizer* tokenizer) {
  TextEncoder encoder{.vocabulary_size = vocabulary_size, .encode = nullptr};
  if (tokenizer != nullptr) encoder.encode = [tokenizer](const std::string& text) { return tokenizer->Encode(text); };
  return encoder;
}

}  // namespace

TextEncoder EncoderOf(const ServedLanguageModel& model) {
  return EncoderOf(model.info.vocabulary_size, model.tokenizer.get());
}

TextEncoder EncoderOf(const ServedClassifier& model) {
  return EncoderOf(model.info.vocabulary_size, model.tokenizer.get());
}

absl::StatusOr<std::vector<int32_t>> ReadInput(const v1::Input& input, const std::string& field,
                                               const TextEncoder& encoder, int64_t most_tokens) {
  LS_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, ReadKind(input, field, encoder));
  if (tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is empty; it must have at least one token"));
  }
  const auto count = static_cast<int64_t>(tokens.size());
  LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of tokens of ", field), count, 1, most_tokens));
  return tokens;
}

std::string DecodeTokens(const std::vector<int32_t>& tokens, const ServedLanguageModel& model) {
  std::string bytes;
  if (model.tokenizer == nullptr) return bytes;
  for (const int32_t token : tokens) bytes += model.tokenizer->Decode(token);
  return bytes;
}

}  // namespace longshort
