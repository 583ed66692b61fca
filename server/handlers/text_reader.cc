#include "server/handlers/text_reader.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/handlers/handlers.h"

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

namespace {

absl::StatusOr<TextVocabulary> VocabularyOf(const core::ServedModel& model, const CallNames& names) {
  if (model.language_model() != nullptr) return TextVocabulary(*model.language_model());
  const core::ServedClassifier& classifier = *model.classifier();
  if (classifier.info.input == models::ClassifierInput::kText) return TextVocabulary(classifier);
  return absl::FailedPreconditionError(
      absl::StrCat(names.rpc(), " needs a model of texts; model ", model.name, " is a classifier of images"));
}

// Errors: INVALID_ARGUMENT if the answer may be too large for a client.
absl::Status CheckAnswerFits(const TokenizeResult& result, int64_t max_bytes) {
  // An id, its piece's length and, unless ids were sent, four places: at most 3 bytes each.
  const int64_t token_bytes = result.spans.empty() ? 6 : 18;
  int64_t bytes = token_bytes * static_cast<int64_t>(result.ids.size());
  if (result.tokenizer != nullptr) {
    for (const int32_t id : result.ids) bytes += static_cast<int64_t>(result.tokenizer->Decode(id).size());
  }
  const auto name = [] { return std::string("number of bytes to return (pieces and places of tokens)"); };
  return CheckFieldRange(name, bytes, 0, max_bytes);
}

}  // namespace

absl::StatusOr<TokenizeResult> Tokenize(CallRecord& record, const TokenizeCall& call) {
  const RequestLimits& limits = record.environment().limits;
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedModel> model, record.FindModel(call.model));
  LS_ASSIGN_OR_RETURN(const TextVocabulary vocabulary, VocabularyOf(*model, record.names()));
  const NamedText text = {.input = call.text, .path = {.field = "input"}};
  TokenizeResult result;
  LS_ASSIGN_OR_RETURN(
      result.ids, ReadText(text, record.names(), vocabulary, std::min(limits.prompt_tokens, limits.described_tokens)));
  // A token has an id and, unless ids were sent, a span: here and, with the token's piece, in the message.
  LS_RETURN_IF_ERROR(record.answers().Hold(static_cast<int64_t>(call.text.text.size() + 96 * result.ids.size())));
  if (model->language_model() != nullptr) {
    result.tokenizer = model->language_model()->tokenizer;
  } else {
    result.tokenizer = model->classifier()->tokenizer;
  }
  if (call.text.kind != TextInput::Kind::kIds) {
    LS_ASSIGN_OR_RETURN(result.spans, result.tokenizer->Spans(call.text.text));
  }
  LS_RETURN_IF_ERROR(CheckAnswerFits(result, record.max_answer_bytes()));
  result.model = record.answering_model();
  return result;
}

}  // namespace longshort::server
