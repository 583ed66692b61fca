#include "server/fronts/openai/openai_front.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/call/unary.h"
#include "server/calls/field_error.h"
#include "server/fronts/openai/classifiers.h"
#include "server/fronts/openai/completions_codec.h"
#include "server/fronts/openai/completions_work.h"
#include "server/fronts/openai/embeddings.h"
#include "server/fronts/openai/find_model.h"
#include "server/fronts/openai/json_request.h"
#include "server/fronts/openai/names.h"
#include "server/fronts/openai/tokenizer_calls.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_query.h"
#include "server/transports/http/http_status.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;
using openai::TokenizerRequest;

constexpr char kBytesType[] = "application/octet-stream";

constexpr RpcAccess kInfer = {.scope = Scope::kInfer};

enum Row { kCompletions, kModels, kPredict, kClassify, kTokenizer, kEmbeddings };

ordered_json ModelObject(const std::string& name, int64_t created) {
  return {{"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "longshort"}};
}

// The list of all models, or with a name the description of one. `created`, a Unix time, stands for the time when each
// model was made.
absl::StatusOr<CallAnswer> ListModels(CallRecord& record, const openai::ModelsRequest& request, int64_t created) {
  ordered_json answer;
  if (!request.name().empty()) {
    LS_RETURN_IF_ERROR(record.FindModel(ReferenceOf(request.name())).status());
    answer = ModelObject(request.name(), created);
  } else {
    std::set<std::string> names;
    for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
      if (record.caller().MayUse(served->name)) names.insert(served->name);
    }
    answer = {{"object", "list"}, {"data", ordered_json::array()}};
    for (const std::string& name : names) answer["data"].push_back(ModelObject(name, created));
  }
  return ShortAnswer(answer);
}

using MakeCodec = std::function<std::unique_ptr<HttpCodec>()>;
using WriteError = HttpResponse (*)(const absl::Status& status);

// What one path takes.
struct Path {
  const Rpc& rpc;
  const char* method;
  // The content types of bodies, or their beginnings such as image/; empty: no body.
  std::vector<std::string_view> content_types;
  WriteError write_error;
  MakeCodec make_codec;
};

absl::Status CheckContentType(const Path& path, const HttpRequest& head) {
  const std::string type = head.MediaType();
  std::string taken;
  for (const std::string_view one : path.content_types) {
    const bool is_kind = one.ends_with('/');
    const bool is_unset = type.empty() && one == kBytesType;  // as huggingface_hub sends bytes
    if (is_unset || (is_kind ? type.starts_with(one) : type == one)) return absl::OkStatus();
    absl::StrAppend(&taken, taken.empty() ? "" : ", ", std::string(one), is_kind ? "*" : "");
  }
  if (path.content_types.empty()) return absl::OkStatus();
  return HttpError(415, absl::StrCat("the content type is ", type.empty() ? "not set" : Quoted(type), "; ", head.path,
                                     " takes ", taken));
}

HttpPlan PlanOf(const CallEnvironment& environment, Path path) {
  HttpPlan plan{.methods = {path.method}, .write_error = path.write_error};
  plan.is_call = !path.rpc.names.observes();
  plan.serve = [&environment, path = std::move(path)](const std::shared_ptr<HttpExchange>& exchange) {
    const absl::Status status = CheckContentType(path, exchange->request());
    if (status.ok()) {
      return HttpCall::Start(environment, path.rpc, exchange, path.make_codec(),
                             path.content_types.empty() ? 0 : MaxJsonBodyBytes(environment.limits.message_bytes));
    }
    exchange->Answer(path.write_error(status));
  };
  return plan;
}

// For the rest of OpenAI's API.
HttpPlan NoSuchPath() {
  HttpPlan plan;
  plan.serve = [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& head = exchange->request();
    exchange->Answer(UnknownUrl(
        absl::StrCat("there is no ", head.method, " ", head.path,
                     "; of OpenAI's API the server has GET /v1/models, GET /v1/models/NAME, POST /v1/completions and "
                     "POST /v1/embeddings, because its models continue or embed a text")));
  };
  return plan;
}

}  // namespace

std::vector<Rpc> OpenAiRpcs() {
  static constexpr CallNames kCompletionsNames(kCompletionsVocabulary, "openai.v1/Completions", kInfer);
  static constexpr CallNames kModelsNames(kCompletionsVocabulary, "openai.v1/Models", kInfer);
  static constexpr CallNames kPredictNames(kClassifierVocabulary, "tei/Predict", kInfer);
  static constexpr CallNames kTokenizerNames(kCompletionsVocabulary, "openai.v1/Tokenizer", kInfer);
  static constexpr CallNames kEmbeddingsNames(kEmbeddingsVocabulary, "openai.v1/Embeddings", kInfer);
  static constexpr CallNames kClassifyNames(kClassifierVocabulary, "http/Classify", kInfer);
  return {Streaming<openai::CompletionsRequest, CallAnswer>(kCompletionsNames, RpcKind::kServerStream, MakeCompletions),
          AnswerAtOnce<openai::ModelsRequest, CallAnswer>(
              kModelsNames,
              [created = absl::ToUnixSeconds(absl::Now())](CallRecord& record, const openai::ModelsRequest& request) {
                return ListModels(record, request, created);
              }),
          AnswerLater<openai::PredictRequest, CallAnswer>(kPredictNames, Predict),
          AnswerLater<openai::ClassifyRequest, CallAnswer>(kClassifyNames, Classify),
          AnswerAtOnce<TokenizerRequest, CallAnswer>(kTokenizerNames, AnswerTokenizer),
          AnswerLater<openai::EmbeddingsRequest, CallAnswer>(kEmbeddingsNames, CreateEmbeddings)};
}

HttpFront OpenAiFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs) {
  const RequestLimits& limits = environment.limits;
  return [&environment, &limits, &rpcs](const HttpRequest& head) -> std::optional<HttpPlan> {
    if (head.path == "/v1/completions") {
      return PlanOf(environment, {rpcs[kCompletions], "POST", {kJsonType}, OpenAiError, [&limits] {
                                    return MakeCompletionsCodec(limits);
                                  }});
    }
    if (head.path == "/v1/embeddings") {
      return PlanOf(environment, {rpcs[kEmbeddings], "POST", {kJsonType}, OpenAiError, [&limits] {
                                    return MakeEmbeddingsCodec(limits);
                                  }});
    }
    if (head.path == "/embed") {
      return PlanOf(environment, {rpcs[kEmbeddings], "POST", {kJsonType}, ProblemDetails, [&limits] {
                                    return MakeEmbedCodec(limits);
                                  }});
    }
    if (head.path == "/predict") {
      return PlanOf(environment, {rpcs[kPredict], "POST", {kJsonType, "image/", kBytesType}, ProblemDetails, [&limits] {
                                    return MakePredictCodec(limits);
                                  }});
    }
    if (head.path == "/classify") {
      return PlanOf(environment, {rpcs[kClassify],
                                  "POST",
                                  {"image/", kBytesType, "multipart/form-data", kJsonType},
                                  ProblemDetails,
                                  [&limits] { return MakeClassifyCodec(limits); }});
    }
    const auto tokenizer = [&](TokenizerRequest::Kind kind) {
      const bool has_body = kind != TokenizerRequest::INFO;
      return PlanOf(environment, {rpcs[kTokenizer], has_body ? "POST" : "GET",
                                  has_body ? std::vector<std::string_view>{kJsonType} : std::vector<std::string_view>(),
                                  OpenAiError, [kind, &limits] { return MakeTokenizerCodec(kind, limits); }});
    };
    if (head.path == "/tokenizer_info") return tokenizer(TokenizerRequest::INFO);
    if (head.path == "/tokenize") return tokenizer(TokenizerRequest::TOKENIZE);
    if (head.path == "/detokenize") return tokenizer(TokenizerRequest::DETOKENIZE);
    absl::string_view rest = head.path;
    if (!absl::ConsumePrefix(&rest, "/v1/")) return std::nullopt;
    if (!absl::ConsumePrefix(&rest, "models") || (!rest.empty() && !absl::ConsumePrefix(&rest, "/"))) {
      return NoSuchPath();
    }
    const std::optional<std::string> name = DecodePercent(std::string_view(rest.data(), rest.size()));
    if (!name.has_value()) return NoSuchPath();
    return PlanOf(environment,
                  {rpcs[kModels], "GET", {}, OpenAiError, [name = *name] { return MakeModelsCodec(name); }});
  };
}

}  // namespace longshort::server
