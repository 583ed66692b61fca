#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"
#include "server/handlers/completion_translator.h"
#include "server/handlers/handlers.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using TokenizerField = RequestField<TokenizerRequest>;

// The text between documents: fairseq's </s> has this id in every vocabulary, and stands for the newline.
constexpr int32_t kEndOfDocument = 2;
constexpr char kModelHelp[] = "A language model. May be absent if one is served.";

// The language model that the request names. Errors: those of ChooseModel; FAILED_PRECONDITION if it has no vocabulary.
absl::StatusOr<std::shared_ptr<const core::ServedLanguageModel>> FindTokenizer(CallRecord& record,
                                                                               const TokenizerRequest& request) {
  LS_ASSIGN_OR_RETURN(const ModelReference reference,
                      ChooseModel(record, request.model, "language models",
                                  [](const core::ServedModel& served) { return served.language_model() != nullptr; }));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedLanguageModel> model, record.FindLanguageModel(reference));
  if (model->tokenizer == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("model ", record.answering_model().name, " has no vocabulary: it takes and gives token ids"));
  }
  return model;
}

}  // namespace

const RequestBody<TokenizerRequest>& TokenizeBody() {
  static const auto* const body = new RequestBody<TokenizerRequest>{
      .name = "TokenizeRequest",
      .fields = {TokenizerField::Model(kModelHelp),
                 {{"add_special_tokens", "boolean", "Has no effect: the vocabularies have no tokens to add."},
                  [](JsonRequest&, const JsonView& value, TokenizerRequest&) {
                    return value.is_absent() ? absl::OkStatus() : value.Boolean().status();
                  }},
                 TokenizerField::Of({.name = "prompt", .type = "string", .help = "The text.", .required = true},
                                    &TokenizerRequest::prompt)}};
  return *body;
}

const RequestBody<TokenizerRequest>& DetokenizeBody() {
  static const auto* const body = new RequestBody<TokenizerRequest>{
      .name = "DetokenizeRequest",
      .fields = {TokenizerField::Model(kModelHelp),
                 {{.name = "tokens", .type = "[integer]", .help = "Token ids.", .required = true},
                  [](JsonRequest& json, const JsonView& value, TokenizerRequest& request) {
                    return json.ReadTokenIds(value, request.tokens);
                  }}}};
  return *body;
}

absl::Status ReadTokenizerInfo(HttpRequest& http, const RequestLimits& /*limits*/, TokenizerRequest& request,
                               MemoryMeter& /*meter*/) {
  request.model = QueryParameter(http.query, "model").value_or("");
  return absl::OkStatus();
}

absl::Status ReadTokenize(HttpRequest& http, const RequestLimits& /*limits*/, TokenizerRequest& request,
                          MemoryMeter& meter) {
  return ReadJsonBody(TokenizeBody(), http.body, {}, meter, request);
}

absl::Status ReadDetokenize(HttpRequest& http, const RequestLimits& limits, TokenizerRequest& request,
                            MemoryMeter& meter) {
  const JsonListLimit lists[] = {{.key = "tokens", .elements = limits.described_tokens}};
  return ReadJsonBody(DetokenizeBody(), http.body, lists, meter, request);
}

absl::StatusOr<CallAnswer> DescribeTokenizer(CallRecord& record, const TokenizerRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model, FindTokenizer(record, request));
  return ShortAnswer({{"model", record.answering_model().name},
                      {"vocab_size", model->info.vocabulary_size},
                      {"eos_token", model->tokenizer->Decode(kEndOfDocument)},
                      {"bos_token", nullptr},
                      {"pad_token", nullptr}});
}

absl::StatusOr<CallAnswer> TokenizePrompt(CallRecord& record, const TokenizerRequest& request) {
  LS_RETURN_IF_ERROR(FindTokenizer(record, request).status());
  std::vector<int32_t> ids;
  if (!request.prompt.empty()) {
    LS_ASSIGN_OR_RETURN(TokenizeResult result,
                        Tokenize(record, {.model = record.answering_model(), .text = ViewOf(request.prompt)}));
    ids = std::move(result.ids);
  }
  const size_t bytes = ids.size() * sizeof(int32_t);
  return JsonAnswer(bytes, [ids = std::move(ids), max_tokens = record.environment().limits.prompt_tokens] {
    return absl::StrCat(R"({"count":)", ids.size(), R"(,"max_model_len":)", max_tokens, R"(,"tokens":[)",
                        absl::StrJoin(ids, ","), "]}");
  });
}

absl::StatusOr<CallAnswer> Detokenize(CallRecord& record, const TokenizerRequest& request) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model, FindTokenizer(record, request));
  const models::Tokenizer& tokenizer = *model->tokenizer;
  const std::vector<int32_t>& ids = request.tokens;
  LS_RETURN_IF_ERROR(CheckFieldRange([] { return "number of tokens"; }, static_cast<int64_t>(ids.size()), 0,
                                     record.environment().limits.described_tokens));
  Utf8Stream stream;
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    LS_RETURN_IF_ERROR(
        CheckFieldRange([i] { return absl::StrCat("tokens[", i, "]"); }, ids[i], 0, tokenizer.vocabulary_size() - 1));
    text += stream.Append(tokenizer.Decode(ids[i]));
  }
  text += stream.Flush();
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return DumpJson({{"prompt", text}}); });
}

}  // namespace longshort::server
