#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/percent_encoding.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/call/unary.h"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kModelsPath = "/v1/models";

ordered_json ModelObject(const std::string& name, int64_t created) {
  return {{"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "longshort"}};
}

// The list of all models, or with a name the description of one. `created`, a Unix time, stands for the time when each
// model was made.
absl::StatusOr<CallAnswer> ListModels(CallRecord& record, const std::string& name, int64_t created) {
  ordered_json answer;
  if (!name.empty()) {
    LS_RETURN_IF_ERROR(record.FindModel(ReferenceOf(name)).status());
    answer = ModelObject(name, created);
  } else {
    std::set<std::string> names;
    for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
      if (record.caller().MayUse(served->name)) names.insert(served->name);
    }
    answer = {{"object", "list"}, {"data", ordered_json::array()}};
    for (const std::string& one : names) answer["data"].push_back(ModelObject(one, created));
  }
  return ShortAnswer(answer);
}

// The name in the path of one model; empty in that of all models; nullopt in other paths, and if it is not coded
// correctly.
std::optional<std::string> ModelIn(std::string_view path) {
  if (!path.starts_with(kModelsPath)) return std::nullopt;
  path.remove_prefix(kModelsPath.size());
  if (path.empty()) return "";
  return path.front() == '/' ? DecodePercent(path.substr(1)) : std::nullopt;
}

absl::Status ReadModels(HttpRequest& http, const RequestLimits& /*limits*/, std::string& name, MemoryMeter& /*meter*/) {
  name = ModelIn(http.path).value_or("");
  return absl::OkStatus();
}

// What one path takes, and its work.
struct Path {
  std::string_view path;
  const char* method;
  // The content types of bodies, or their beginnings such as image/; empty: no body.
  std::array<std::string_view, 4> content_types;
  HttpResponse (*write_error)(const absl::Status& status);
  Operation operation;

  bool has_body() const { return !content_types.front().empty(); }
};

template <typename Request, typename Handle>
std::function<std::unique_ptr<CallWork>(Call&)> Work(ReadHttp<Request>* read, Handle handle) {
  return WorkThatAnswers<Request, CallAnswer>(
      [read](Call& call, Request& request) { return ReadFrom(call, read, request); }, handle);
}

std::vector<Path> MakePaths() {
  constexpr RpcAccess kInfer = {.scope = Scope::kInfer};
  constexpr CallNames kCompletions(kCompletionsVocabulary, "openai.v1/Completions", kInfer);
  constexpr CallNames kModels(kCompletionsVocabulary, "openai.v1/Models", kInfer);
  constexpr CallNames kTokenizer(kCompletionsVocabulary, "openai.v1/Tokenizer", kInfer);
  constexpr CallNames kEmbeddings(kEmbeddingsVocabulary, "openai.v1/Embeddings", kInfer);
  constexpr CallNames kPredict(kClassifierVocabulary, "tei/Predict", kInfer);
  constexpr CallNames kClassify(kClassifierVocabulary, "http/Classify", kInfer);
  const auto list_models = [created = absl::ToUnixSeconds(absl::Now())](CallRecord& record, const std::string& name) {
    return ListModels(record, name, created);
  };
  return {
      {kModelsPath, "GET", {}, OpenAiError, {.names = kModels, .work = Work(ReadModels, AtOnce(list_models))}},
      {"/v1/completions",
       "POST",
       {kJsonType},
       OpenAiError,
       {.names = kCompletions, .kind = RpcKind::kServerStream, .work = MakeCompletions}},
      {"/v1/embeddings",
       "POST",
       {kJsonType},
       OpenAiError,
       {.names = kEmbeddings, .work = Work(ReadEmbeddings, CreateEmbeddings)}},
      {"/embed",
       "POST",
       {kJsonType},
       ProblemDetails,
       {.names = kEmbeddings, .work = Work(ReadEmbed, CreateEmbeddings)}},
      {"/predict",
       "POST",
       {kJsonType, "image/", kBytesType},
       ProblemDetails,
       {.names = kPredict, .work = Work(ReadPredict, Predict)}},
      {"/classify",
       "POST",
       {"image/", kBytesType, kFormType, kJsonType},
       ProblemDetails,
       {.names = kClassify, .work = Work(ReadClassify, Classify)}},
      {"/tokenizer_info",
       "GET",
       {},
       OpenAiError,
       {.names = kTokenizer, .work = Work(ReadTokenizerInfo, AtOnce(DescribeTokenizer))}},
      {"/tokenize",
       "POST",
       {kJsonType},
       OpenAiError,
       {.names = kTokenizer, .work = Work(ReadTokenize, AtOnce(TokenizePrompt))}},
      {"/detokenize",
       "POST",
       {kJsonType},
       OpenAiError,
       {.names = kTokenizer, .work = Work(ReadDetokenize, AtOnce(Detokenize))}},
  };
}

// Writes the errors of every path, and the events of a stream of completions.
class PathCodec final : public HttpCodec {
 public:
  explicit PathCodec(const Path& path) : path_(path) {}

  HttpResponse WriteError(const absl::Status& status) override { return path_.write_error(status); }
  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  std::string WriteEnd(const absl::Status& status) override {
    return ServerSentEvent(status.ok() ? "[DONE]" : path_.write_error(status).body);
  }

 private:
  const Path& path_;
};

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

HttpPlan PlanOf(const CallEnvironment& environment, const Path& path) {
  HttpPlan plan{.methods = {path.method}, .write_error = path.write_error};
  const auto make_codec = [&path](const HttpRequest& request) -> absl::StatusOr<std::unique_ptr<HttpCodec>> {
    LS_RETURN_IF_ERROR(CheckContentType(path, request));
    return std::make_unique<PathCodec>(path);
  };
  ServeCalls(environment, path.operation, path.has_body() ? MaxJsonBodyBytes(environment.limits.message_bytes) : 0,
             make_codec, plan);
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

HttpFront OpenAiFront(const CallEnvironment& environment) {
  return [&environment, paths = std::make_shared<const std::vector<Path>>(MakePaths())](
             const HttpRequest& head) -> std::optional<HttpPlan> {
    const std::string_view path = ModelIn(head.path).has_value() ? kModelsPath : std::string_view(head.path);
    for (const Path& one : *paths) {
      if (one.path == path) return PlanOf(environment, one);
    }
    return head.path.starts_with("/v1/") ? std::optional(NoSuchPath()) : std::nullopt;
  };
}

HttpResponse OpenAiError(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  const std::string_view message(status.message().data(), status.message().size());
  std::optional<std::string_view> field;
  if (http_status == 400) {
    field = FieldIn(message,
                    [](std::string_view word) { return CompletionsBody().Has(word) || EmbeddingsBody().Has(word); });
  }
  if (http_status == 404) field = "model";
  return ErrorAnswer(http_status, message, field, KindOf(http_status));
}

CallAnswer ShortAnswer(const ordered_json& json) {
  std::string text = DumpJson(json);
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return text; });
}

}  // namespace longshort::server
