// The names of fields and models in errors, and the JSON of errors.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

std::string Indexed(std::string_view name, const FieldPath& path) {
  std::string text(name);
  if (path.index.has_value()) absl::StrAppend(&text, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&text, "[", *path.id_index, "]");
  return text;
}

// The fields of WithTruncation.
constexpr char kTruncation[] = "truncate and truncation_direction \"Right\"";

std::string NameOfCompletionsField(const FieldPath& path) {
  constexpr std::string_view kSampling = "sampling.";
  if (path.field == "completions") return "n";
  if (path.field == "top_alternatives") return "logprobs";
  if (path.field == "model.name") return "model";
  if (path.field == "prompts" || (path.field == "inputs" && !path.index.has_value())) return "prompts";
  if (path.field == "inputs") return Indexed("prompt", path);
  if (path.field == "sampling.logit_bias" && path.index.has_value()) {
    return absl::StrCat("logit_bias[\"", *path.index, "\"]");
  }
  if (path.field.starts_with(kSampling)) return std::string(path.field.substr(kSampling.size()));
  return Indexed(path.field, path);
}

std::string NameOfEmbeddingsField(const FieldPath& path) {
  if (path.field == "model.name") return "model";
  if (path.field == "truncate") return kTruncation;
  return path.field == "inputs" ? Indexed("input", path) : Indexed(path.field, path);
}

std::string NameOfClassifierField(const FieldPath& path) {
  if (path.field == "model.name") return "model";
  if (path.field == "truncate") return kTruncation;
  if (path.field == "images") return "the body";
  if (path.field == "second_inputs") return absl::StrCat("the second text of ", Indexed("inputs", path));
  return Indexed(path.field, path);
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

}  // namespace

constexpr FieldVocabulary kCompletionsVocabulary = {.name_of = NameOfCompletionsField,
                                                    .text_kinds = "text or token ids",
                                                    .image_kinds = "",
                                                    .streaming_rpc = "`stream`"};
constexpr FieldVocabulary kEmbeddingsVocabulary = {
    .name_of = NameOfEmbeddingsField, .text_kinds = "text or token ids", .image_kinds = "", .streaming_rpc = ""};
constexpr FieldVocabulary kClassifierVocabulary = {
    .name_of = NameOfClassifierField, .text_kinds = "text", .image_kinds = "an image file", .streaming_rpc = ""};

HttpResponse NoSuchPathError(const HttpRequest& head) {
  const std::string message =
      absl::StrCat("there is no ", head.method, " ", head.path,
                   "; of OpenAI's API the server has GET /v1/models, GET /v1/models/NAME, POST /v1/completions and "
                   "POST /v1/embeddings, because its models continue or embed a text");
  return ErrorAnswer(404, message, std::nullopt, {"invalid_request_error", "unknown_url"});
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

HttpResponse ProblemDetails(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  return {.status = http_status,
          .body = DumpJson({{"type", "about:blank"},
                            {"title", HttpReason(http_status)},
                            {"status", http_status},
                            {"detail", std::string(status.message())},
                            {"error", std::string(status.message())},  // for clients of TEI and huggingface_hub
                            {"code", std::string(CodeName(status.code()))}}),
          .content_type = "application/problem+json"};
}

ModelReference ReferenceOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  int64_t version = 0;
  if (slash == std::string::npos || !absl::SimpleAtoi(name.substr(slash + 1), &version) || version < 1)
    return {.name = name};
  return {.name = name.substr(0, slash), .version = version};
}

absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind) {
  if (!name.empty()) return ReferenceOf(name);
  std::set<std::string> names;
  for (const std::shared_ptr<core::ServedModel>& served : record.environment().models.List()) {
    if (is_of_kind(*served) && record.caller().MayUse(served->name)) names.insert(served->name);
  }
  if (names.size() == 1) return ModelReference{.name = *names.begin()};
  if (names.empty()) return absl::NotFoundError(absl::StrCat("the server has no ", kind));
  return absl::InvalidArgumentError(
      absl::StrCat("the request names no model; `model` in JSON, or ?model=NAME in the address, must name one of the ",
                   kind, ": ", absl::StrJoin(names, ", ")));
}

}  // namespace longshort::server
