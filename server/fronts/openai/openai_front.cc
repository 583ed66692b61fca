#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/text.h"
#include "nlohmann/json.hpp"
#include "server/call/unary.h"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kModelsPath = "/v1/models";
constexpr HttpParameter kModelParameter = {"model", "string", "The model. May be absent if one of its kind is served."};

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

// huggingface_hub's clients get the list.
constexpr char kClassesType[] = R"({"anyOf": [{"$ref": "#/components/schemas/ImageClassification"},
  {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}}]})";
// Scored classes, or a list of such lists.
constexpr char kPredictionsType[] = R"({"anyOf": [
  {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}},
  {"type": "array", "items": {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}}}]})";

const ErrorForm kOpenAiErrors = {
    .name = "OpenAIError", .help = "An error in OpenAI's form.", .content = {.type = "OpenAIError"}};
const ErrorForm kProblems = {.name = "Problem",
                             .help = "An error as problem details (RFC 9457).",
                             .content = {.media_type = "application/problem+json", .type = "Problem"}};

// One path: what /openapi.json says of it, what it takes, and its work.
struct Path {
  HttpOperation about;
  Operation operation;
  // The content types of bodies, or their beginnings such as image/; empty: no body.
  std::vector<std::string_view> content_types = {};

  auto error_writer() const { return about.errors == &kProblems ? ProblemDetails : OpenAiError; }
};

template <typename Request, typename Handle>
std::function<std::unique_ptr<CallWork>(Call&)> Work(ReadHttp<Request>* read, Handle handle) {
  return WorkThatAnswers<Request, CallAnswer>(
      [read](Call& call, Request& request) { return ReadFrom(call, read, request); }, handle);
}

HttpOperation Get(const char* tag, const char* path, const char* id, const char* summary, std::string_view answer) {
  return {.method = "get",
          .path = path,
          .tag = tag,
          .id = id,
          .summary = summary,
          .answers = {{.type = answer}},
          .errors = &kOpenAiErrors};
}

// A path that takes a body of this type.
HttpOperation Post(const char* tag, const char* path, const char* id, const char* summary, std::string_view body,
                   std::string_view answer) {
  HttpOperation operation = Get(tag, path, id, summary, answer);
  operation.method = "post";
  operation.requests = {{.type = body}};
  return operation;
}

constexpr RpcAccess kInfer = {.scope = Scope::kInfer};

std::vector<Path> OpenAiPaths() {
  constexpr char kTag[] = "OpenAI";
  constexpr CallNames kCompletions(kCompletionsVocabulary, "openai.v1/Completions", kInfer);
  constexpr CallNames kModels(kCompletionsVocabulary, "openai.v1/Models", kInfer);
  constexpr CallNames kEmbeddings(kEmbeddingsVocabulary, "openai.v1/Embeddings", kInfer);
  HttpOperation completions =
      Post(kTag, "/v1/completions", "openai_completions", "Continues prompts; with `stream`, by server-sent events.",
           "CompletionRequest", "Completion");
  completions.answers.push_back({.media_type = "text/event-stream", .type = "string"});
  const auto list_models = [created = absl::ToUnixSeconds(absl::Now())](CallRecord& record, const std::string& name) {
    return ListModels(record, name, created);
  };
  return {
      {Get(kTag, "/v1/models", "openai_models", "The models that the caller may use.", "ModelList"),
       {.names = kModels, .work = Work(ReadModels, AtOnce(list_models))}},
      {completions, {.names = kCompletions, .kind = RpcKind::kServerStream, .work = MakeCompletions}, {kJsonType}},
      {Post(kTag, "/v1/embeddings", "openai_embeddings", "Embeds texts.", "EmbeddingsRequest", "EmbeddingList"),
       {.names = kEmbeddings, .work = Work(ReadEmbeddings, CreateEmbeddings)},
       {kJsonType}},
  };
}

std::vector<Path> TokenizerPaths() {
  constexpr char kTag[] = "Tokenizer";
  constexpr CallNames kNames(kCompletionsVocabulary, "openai.v1/Tokenizer", kInfer);
  HttpOperation info = Get(kTag, "/tokenizer_info", "tokenizer_info",
                           "The tokenizer of a language model, as vLLM describes it.", "TokenizerInfo");
  info.parameters = {kModelParameter};
  return {
      {info, {.names = kNames, .work = Work(ReadTokenizerInfo, AtOnce(DescribeTokenizer))}},
      {Post(kTag, "/tokenize", "tokenize", "Converts a text to token ids.", "TokenizeRequest", "Tokens"),
       {.names = kNames, .work = Work(ReadTokenize, AtOnce(TokenizePrompt))},
       {kJsonType}},
      {Post(kTag, "/detokenize", "detokenize", "Converts token ids to their text.", "DetokenizeRequest", "DecodedText"),
       {.names = kNames, .work = Work(ReadDetokenize, AtOnce(Detokenize))},
       {kJsonType}}};
}

HttpContent Bytes(const char* media_type) { return {.media_type = media_type, .type = "bytes"}; }

std::vector<Path> ClassifierPaths() {
  constexpr char kTag[] = "Classifiers";
  constexpr CallNames kEmbed(kEmbeddingsVocabulary, "openai.v1/Embeddings", kInfer);
  constexpr CallNames kPredict(kClassifierVocabulary, "tei/Predict", kInfer);
  constexpr CallNames kClassify(kClassifierVocabulary, "http/Classify", kInfer);
  HttpOperation predict =
      Post(kTag, "/predict", "predict", "Classifies texts or images, as Text Embeddings Inference classifies texts.",
           "PredictRequest", kPredictionsType);
  predict.requests.push_back(Bytes(kBytesType));
  HttpOperation embed =
      Post(kTag, "/embed", "embed", "Embeds texts, as Text Embeddings Inference does.", "EmbedRequest", "[[number]]");
  HttpOperation classify =
      Post(kTag, "/classify", "classify", "Classifies an image: the body, the file of a form, or a text in base64.",
           "PredictRequest", kClassesType);
  const HttpContent images[] = {Bytes(kBytesType),
                                Bytes("image/jpeg"),
                                Bytes("image/png"),
                                Bytes("image/webp"),
                                {.media_type = kFormType, .type = "ImageForm"}};
  classify.requests.insert(classify.requests.begin(), std::begin(images), std::end(images));
  for (HttpOperation* const one : {&predict, &embed, &classify}) {
    one->errors = &kProblems;
    one->parameters = {kModelParameter};
  }
  classify.parameters.push_back({"top_k", "integer", "How many classes; 5 by default."});
  return {{predict, {.names = kPredict, .work = Work(ReadPredict, Predict)}, {kJsonType, "image/", kBytesType}},
          {embed, {.names = kEmbed, .work = Work(ReadEmbed, CreateEmbeddings)}, {kJsonType}},
          {classify,
           {.names = kClassify, .work = Work(ReadClassify, Classify)},
           {"image/", kBytesType, kFormType, kJsonType}}};
}

std::vector<Path> MakePaths() {
  std::vector<Path> paths;
  for (const std::vector<Path>& some : {OpenAiPaths(), TokenizerPaths(), ClassifierPaths()}) {
    paths.insert(paths.end(), some.begin(), some.end());
  }
  return paths;
}

// Writes the errors of every path, and the events of a stream of completions.
class PathCodec final : public HttpCodec {
 public:
  explicit PathCodec(const Path& path) : path_(path) {}

  HttpResponse WriteError(const absl::Status& status) override { return path_.error_writer()(status); }
  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  std::string WriteEnd(const absl::Status& status) override {
    return ServerSentEvent(status.ok() ? "[DONE]" : WriteError(status).body);
  }

 private:
  const Path& path_;
};

absl::Status CheckContentType(const Path& path, const HttpRequest& head) {
  if (path.content_types.empty()) return absl::OkStatus();
  const std::string type = head.MediaType();
  std::string taken;
  for (const std::string_view one : path.content_types) {
    const bool is_kind = one.ends_with('/');
    const bool is_unset = type.empty() && one == kBytesType;  // as huggingface_hub sends bytes
    if (is_unset || (is_kind ? type.starts_with(one) : type == one)) return absl::OkStatus();
    absl::StrAppend(&taken, taken.empty() ? "" : ", ", std::string(one), is_kind ? "*" : "");
  }
  return HttpError(415, absl::StrCat("the content type is ", type.empty() ? "not set" : Quoted(type), "; ", head.path,
                                     " takes ", taken));
}

HttpPlan PlanOf(const CallEnvironment& environment, const Path& path) {
  HttpPlan plan{.methods = {absl::AsciiStrToUpper(path.about.method)}, .write_error = path.error_writer()};
  const auto make_codec = [&path](const HttpRequest& request) -> absl::StatusOr<std::unique_ptr<HttpCodec>> {
    LS_RETURN_IF_ERROR(CheckContentType(path, request));
    return std::make_unique<PathCodec>(path);
  };
  const size_t most = path.content_types.empty() ? 0 : MaxJsonBodyBytes(environment.limits.message_bytes);
  ServeCalls(environment, path.operation, most, make_codec, plan);
  return plan;
}

// Whether it is of OpenAI's API; /v1 may be missing in a client's base_url.
bool IsOfOpenAi(std::string_view path) {
  constexpr std::string_view kWithoutVersion[] = {"/chat/completions", "/completions", "/embeddings", "/models",
                                                  "/responses"};
  return path.starts_with("/v1/") ||
         std::find(std::begin(kWithoutVersion), std::end(kWithoutVersion), path) != std::end(kWithoutVersion);
}

// For the rest of OpenAI's API.
HttpPlan NoSuchPath() {
  HttpPlan plan;
  plan.serve = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Answer(NoSuchPathError(exchange->request()));
  };
  return plan;
}

}  // namespace

HttpFront OpenAiFront(const CallEnvironment& environment) {
  return [&environment, paths = std::make_shared<const std::vector<Path>>(MakePaths())](
             const HttpRequest& head) -> std::optional<HttpPlan> {
    const std::string_view path = ModelIn(head.path).has_value() ? kModelsPath : std::string_view(head.path);
    for (const Path& one : *paths) {
      if (one.about.path == path) return PlanOf(environment, one);
    }
    return IsOfOpenAi(head.path) ? std::optional(NoSuchPath()) : std::nullopt;
  };
}

HttpDescription OpenAiDescription() {
  HttpDescription description{.schemas = OpenAiSchemas()};
  for (Path& path : MakePaths()) description.operations.push_back(std::move(path.about));
  HttpOperation named = Get("OpenAI", "/v1/models/{model}", "openai_model", "One model.", "Model");
  named.parameters = {{"model", "string", "Its name."}};
  description.operations.insert(description.operations.begin() + 1, std::move(named));
  return description;
}

CallAnswer ShortAnswer(const ordered_json& json) {
  std::string text = DumpJson(json);
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return text; });
}

}  // namespace longshort::server
