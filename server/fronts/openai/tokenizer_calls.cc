#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "server/calls/field_error.h"
#include "server/fronts/openai/json_request.h"
#include "server/fronts/openai/names.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/completion_translator.h"
#include "server/handlers/handlers.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using google::protobuf::Message;
using openai::TokenizerRequest;

// The text between documents: fairseq's </s> has this id in every vocabulary, and stands for the newline.
constexpr int32_t kEndOfDocument = 2;
constexpr char kModelHelp[] = "A language model. May be absent if one is served.";

absl::StatusOr<std::string> Decode(const TokenizerRequest& request, const models::Tokenizer& tokenizer,
                                   int64_t max_tokens) {
  LS_RETURN_IF_ERROR(CheckFieldRange([] { return "number of tokens"; }, request.tokens_size(), 0, max_tokens));
  Utf8Stream stream;
  std::string text;
  for (int i = 0; i < request.tokens_size(); ++i) {
    const int32_t id = request.tokens(i);
    LS_RETURN_IF_ERROR(
        CheckFieldRange([i] { return absl::StrCat("tokens[", i, "]"); }, id, 0, tokenizer.vocabulary_size() - 1));
    text += stream.Append(tokenizer.Decode(id));
  }
  return text + stream.Flush();
}

absl::StatusOr<CallAnswer> Tokenized(CallRecord& record, const std::string& prompt) {
  std::vector<int32_t> ids;
  if (!prompt.empty()) {
    LS_ASSIGN_OR_RETURN(TokenizeResult result,
                        Tokenize(record, {.model = record.answering_model(),
                                          .text = {.kind = TextInput::Kind::kText, .text = prompt}}));
    ids = std::move(result.ids);
  }
  const size_t bytes = ids.size() * sizeof(int32_t);
  return JsonAnswer(bytes, [ids = std::move(ids), max_tokens = record.environment().limits.prompt_tokens] {
    return absl::StrCat(R"({"count":)", ids.size(), R"(,"max_model_len":)", max_tokens, R"(,"tokens":[)",
                        absl::StrJoin(ids, ","), "]}");
  });
}

absl::Status ReadTokens(JsonRequest& json, const JsonView& value, Message& message) {
  return json.ReadTokenIds(value, *static_cast<TokenizerRequest&>(message).mutable_tokens());
}

absl::Status ReadTokenizerBody(TokenizerRequest::Kind kind, const RequestBody& table, HttpRequest& request,
                               const RequestLimits& limits, Message& message, MemoryMeter& meter) {
  const JsonListLimit lists[] = {{.key = "tokens", .elements = limits.described_tokens}};
  static_cast<TokenizerRequest&>(message).set_kind(kind);
  return ReadBody(table, request.body, lists, meter, message);
}

}  // namespace

const RequestBody& TokenizeBody() {
  static const auto* const body = new RequestBody{
      .name = "TokenizeRequest",
      .fields = {RequestField::Text("model", kModelHelp),
                 {{"add_special_tokens", "boolean", "Has no effect: the vocabularies have no tokens to add."}, ""},
                 {{.name = "prompt", .type = "string", .help = "The text.", .required = true}}}};
  return *body;
}

const RequestBody& DetokenizeBody() {
  static const auto* const body = new RequestBody{
      .name = "DetokenizeRequest",
      .fields = {
          RequestField::Text("model", kModelHelp),
          {{.name = "tokens", .type = "[integer]", .help = "Token ids.", .required = true}, nullptr, ReadTokens}}};
  return *body;
}

absl::Status ReadTokenizerInfo(HttpRequest& request, const RequestLimits& /*limits*/, Message& message,
                               MemoryMeter& /*meter*/) {
  static_cast<TokenizerRequest&>(message).set_model(QueryParameter(request.query, "model").value_or(""));
  return absl::OkStatus();
}

absl::Status ReadTokenize(HttpRequest& request, const RequestLimits& limits, Message& message, MemoryMeter& meter) {
  return ReadTokenizerBody(TokenizerRequest::TOKENIZE, TokenizeBody(), request, limits, message, meter);
}

absl::Status ReadDetokenize(HttpRequest& request, const RequestLimits& limits, Message& message, MemoryMeter& meter) {
  return ReadTokenizerBody(TokenizerRequest::DETOKENIZE, DetokenizeBody(), request, limits, message, meter);
}

absl::StatusOr<CallAnswer> AnswerTokenizer(CallRecord& record, const TokenizerRequest& request) {
  LS_ASSIGN_OR_RETURN(const ModelReference reference,
                      ChooseModel(record, request.model(), "language models",
                                  [](const core::ServedModel& served) { return served.language_model() != nullptr; }));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                      record.FindLanguageModel(reference));
  if (model->tokenizer == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("model ", record.answering_model().name, " has no vocabulary: it takes and gives token ids"));
  }
  if (request.kind() == TokenizerRequest::TOKENIZE) return Tokenized(record, request.prompt());
  if (request.kind() == TokenizerRequest::INFO) {
    return ShortAnswer({{"model", record.answering_model().name},
                        {"vocab_size", model->info.vocabulary_size},
                        {"eos_token", model->tokenizer->Decode(kEndOfDocument)},
                        {"bos_token", nullptr},
                        {"pad_token", nullptr}});
  }
  LS_ASSIGN_OR_RETURN(std::string text,
                      Decode(request, *model->tokenizer, record.environment().limits.described_tokens));
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return DumpJson({{"prompt", text}}); });
}

}  // namespace longshort::server
