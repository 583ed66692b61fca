#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/call/unary.h"
#include "server/calls/field_error.h"
#include "server/fronts/openai/json_request.h"
#include "server/fronts/openai/names.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;
using openai::TokenizerRequest;

constexpr char kFormType[] = "multipart/form-data";
constexpr std::string_view kModelsPath = "/v1/models";

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

// What one path takes.
struct Path {
  std::string_view path;
  const char* method;
  Row row;
  // The content types of bodies, or their beginnings such as image/; empty: no body.
  std::array<std::string_view, 4> content_types;
  ReadIntoMessage* read;
  HttpResponse (*write_error)(const absl::Status& status);

  bool has_body() const { return !content_types.front().empty(); }
};

constexpr Path kPaths[] = {
    {kModelsPath, "GET", kModels, {}, ReadModels, OpenAiError},
    {"/v1/completions", "POST", kCompletions, {kJsonType}, ReadCompletions, OpenAiError},
    {"/v1/embeddings", "POST", kEmbeddings, {kJsonType}, ReadEmbeddings, OpenAiError},
    {"/embed", "POST", kEmbeddings, {kJsonType}, ReadEmbed, ProblemDetails},
    {"/predict", "POST", kPredict, {kJsonType, "image/", kBytesType}, ReadPredict, ProblemDetails},
    {"/classify", "POST", kClassify, {"image/", kBytesType, kFormType, kJsonType}, ReadClassify, ProblemDetails},
    {"/tokenizer_info", "GET", kTokenizer, {}, ReadTokenizerInfo, OpenAiError},
    {"/tokenize", "POST", kTokenizer, {kJsonType}, ReadTokenize, OpenAiError},
    {"/detokenize", "POST", kTokenizer, {kJsonType}, ReadDetokenize, OpenAiError},
};

// The codec of every path without streams.
class PathCodec final : public HttpCodec {
 public:
  PathCodec(const Path& path, const RequestLimits& limits) : path_(path), limits_(limits) {}

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    return path_.read(request, limits_, message, meter);
  }
  HttpResponse WriteError(const absl::Status& status) override { return path_.write_error(status); }

 private:
  const Path& path_;
  const RequestLimits& limits_;
};

std::unique_ptr<HttpCodec> MakeCodec(const Path& path, const RequestLimits& limits) {
  if (path.row == kCompletions) return MakeCompletionsCodec(limits);
  return std::make_unique<PathCodec>(path, limits);
}

// The name in the path of one model; empty in that of all models; nullopt in other paths, and if it is not coded
// correctly.
std::optional<std::string> ModelIn(std::string_view path) {
  if (!path.starts_with(kModelsPath)) return std::nullopt;
  path.remove_prefix(kModelsPath.size());
  if (path.empty()) return "";
  return path.front() == '/' ? DecodePercent(path.substr(1)) : std::nullopt;
}

// nullptr if the room has no such path.
const Path* FindPath(std::string_view path) {
  if (ModelIn(path).has_value()) path = kModelsPath;
  for (const Path& one : kPaths) {
    if (one.path == path) return &one;
  }
  return nullptr;
}

absl::Status CheckContentType(const Path& path, const HttpRequest& head) {
  if (!path.has_body()) return absl::OkStatus();
  const std::string type = head.MediaType();
  std::string taken;
  for (const std::string_view one : path.content_types) {
    if (one.empty()) break;
    const bool is_kind = one.ends_with('/');
    const bool is_unset = type.empty() && one == kBytesType;  // as huggingface_hub sends bytes
    if (is_unset || (is_kind ? type.starts_with(one) : type == one)) return absl::OkStatus();
    absl::StrAppend(&taken, taken.empty() ? "" : ", ", std::string(one), is_kind ? "*" : "");
  }
  return HttpError(415, absl::StrCat("the content type is ", type.empty() ? "not set" : Quoted(type), "; ", head.path,
                                     " takes ", taken));
}

HttpPlan PlanOf(const CallEnvironment& environment, const Path& path, const Rpc& rpc) {
  HttpPlan plan{.methods = {path.method}, .write_error = path.write_error};
  const RequestLimits& limits = environment.limits;
  const auto make_codec = [&path, &limits](const HttpRequest& request) -> absl::StatusOr<std::unique_ptr<HttpCodec>> {
    LS_RETURN_IF_ERROR(CheckContentType(path, request));
    return MakeCodec(path, limits);
  };
  ServeCalls(environment, rpc, path.has_body() ? MaxJsonBodyBytes(limits.message_bytes) : 0, make_codec, plan);
  return plan;
}

struct ErrorKind {
  const char* type;
  const char* code;  // nullptr: null
};

ErrorKind KindOf(int http_status) {
  switch (http_status) {
    case 401:
      return {"invalid_request_error", "invalid_api_key"};
    case 403:
      return {"invalid_request_error", "insufficient_permissions"};
    case 404:
      return {"invalid_request_error", "model_not_found"};
    case 429:
      return {"rate_limit_error", "rate_limit_exceeded"};
    case 503:
      return {"server_error", "service_unavailable"};
    case 504:
      return {"server_error", "timeout"};
    default:
      constexpr int kFirstServerError = 500;
      if (http_status >= kFirstServerError) return {"server_error", nullptr};
      return {"invalid_request_error", nullptr};
  }
}

HttpResponse ErrorAnswer(int http_status, std::string_view message, std::optional<std::string_view> field,
                         const ErrorKind& kind) {
  const ordered_json error = {{"message", message},
                              {"type", kind.type},
                              {"param", field.has_value() ? ordered_json(*field) : ordered_json()},
                              {"code", kind.code == nullptr ? ordered_json() : ordered_json(kind.code)}};
  return {.status = http_status, .body = DumpJson({{"error", error}}), .content_type = kJsonType};
}

// For the rest of OpenAI's API.
HttpPlan NoSuchPath() {
  HttpPlan plan;
  plan.serve = [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& head = exchange->request();
    const std::string message =
        absl::StrCat("there is no ", head.method, " ", head.path,
                     "; of OpenAI's API the server has GET /v1/models, GET /v1/models/NAME, POST /v1/completions and "
                     "POST /v1/embeddings, because its models continue or embed a text");
    exchange->Answer(ErrorAnswer(404, message, std::nullopt, {"invalid_request_error", "unknown_url"}));
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
  return [&environment, &rpcs](const HttpRequest& head) -> std::optional<HttpPlan> {
    if (const Path* const path = FindPath(head.path); path != nullptr) {
      return PlanOf(environment, *path, rpcs[path->row]);
    }
    return head.path.starts_with("/v1/") ? std::optional(NoSuchPath()) : std::nullopt;
  };
}

std::unique_ptr<HttpCodec> MakeOpenAiCodec(std::string_view path, const RequestLimits& limits) {
  return MakeCodec(*FindPath(path), limits);
}

absl::Status ReadModels(HttpRequest& request, const RequestLimits& /*limits*/, google::protobuf::Message& message,
                        MemoryMeter& /*meter*/) {
  static_cast<openai::ModelsRequest&>(message).set_name(ModelIn(request.path).value_or(""));
  return absl::OkStatus();
}

HttpResponse OpenAiError(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  const std::string_view message(status.message().data(), status.message().size());
  std::optional<std::string_view> field;
  if (http_status == 400) field = FieldIn(message, {&CompletionsBody(), &EmbeddingsBody()});
  if (http_status == 404) field = "model";
  return ErrorAnswer(http_status, message, field, KindOf(http_status));
}

CallAnswer ShortAnswer(const ordered_json& json) {
  std::string text = DumpJson(json);
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return text; });
}

}  // namespace longshort::server
