#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/handlers.h"
#include "server/handlers/text_reader.h"

namespace longshort::server {
namespace {

absl::StatusOr<TextVocabulary> VocabularyOf(const core::ServedModel& model, const CallNames& names) {
  if (model.language_model() != nullptr) return TextVocabulary(*model.language_model());
  const core::ServedClassifier& classifier = *model.classifier();
  if (classifier.info.input == models::ClassifierInput::kText) return TextVocabulary(classifier);
  return absl::FailedPreconditionError(
      absl::StrCat(names.rpc(), " needs a model of texts; model ", model.name, " is a classifier of images"));
}

// Errors: INVALID_ARGUMENT if the answer may be too large for a client.
absl::Status CheckAnswerFits(const TokenizeResult& result, const CallNames& names) {
  // An id, its piece's length and, unless ids were sent, four places: at most 3 bytes each.
  const int64_t token_bytes = result.spans.empty() ? 6 : 18;
  int64_t bytes = token_bytes * static_cast<int64_t>(result.ids.size());
  if (result.tokenizer != nullptr) {
    for (const int32_t id : result.ids) bytes += static_cast<int64_t>(result.tokenizer->Decode(id).size());
  }
  const auto name = [] { return std::string("number of bytes to return (pieces and places of tokens)"); };
  return CheckFieldRange(name, bytes, 0, names.answer_bytes());
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
  LS_RETURN_IF_ERROR(CheckAnswerFits(result, record.names()));
  result.model = record.answering_model();
  return result;
}

}  // namespace longshort::server
