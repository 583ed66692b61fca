#include "server/openai/completions_codec.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/http/http_status.h"
#include "server/openai/completions_request.h"
#include "server/openai/fields.h"
#include "server/openai/json_request.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

ordered_json LogprobsOf(const openai::Choice& choice) {
  ordered_json tokens = ordered_json::array(), logprobs = tokens, tops = tokens, offsets = tokens;
  for (const openai::Token& token : choice.tokens()) {
    tokens.push_back(token.text());
    logprobs.push_back(token.has_logprob() ? ordered_json(token.logprob()) : ordered_json());
    ordered_json top;
    for (const openai::Token& one : token.top()) top[one.text()] = one.logprob();
    tops.push_back(std::move(top));
    offsets.push_back(token.text_offset());
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

ordered_json ToJson(const openai::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens()},
          {"completion_tokens", usage.completion_tokens()},
          {"total_tokens", usage.prompt_tokens() + usage.completion_tokens()},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens()}}}};
}

ordered_json ToJson(const openai::Completions& answer) {
  ordered_json choices = ordered_json::array();
  for (const openai::Choice& choice : answer.choices()) {
    choices.push_back(
        {{"index", choice.index()},
         {"text", choice.text()},
         {"logprobs", choice.has_logprobs() ? LogprobsOf(choice) : ordered_json()},
         {"finish_reason", choice.finish_reason().empty() ? ordered_json() : ordered_json(choice.finish_reason())}});
  }
  return {{"id", answer.id()},
          {"object", "text_completion"},
          {"created", answer.created()},
          {"model", answer.model()},
          {"choices", std::move(choices)}};
}

class CompletionsCodec final : public HttpCodec {
 public:
  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message) override {
    LS_ASSIGN_OR_RETURN(openai::CompletionsRequest read, ReadCompletionsRequest(request.body));
    include_usage_ = read.include_usage();
    static_cast<openai::CompletionsRequest&>(message) = std::move(read);
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    const auto& completions = static_cast<const openai::Completions&>(answer);
    ordered_json json = ToJson(completions);
    json["usage"] = ToJson(completions.usage());
    return HttpResponse{.body = DumpJson(json), .content_type = kJsonType};
  }
  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }

  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  absl::StatusOr<std::string> WriteMessage(const google::protobuf::Message& answer) override {
    const auto& part = static_cast<const openai::Completions&>(answer);
    if (part.choices().empty() && !part.has_usage()) return std::string(": keepalive\n\n");
    ordered_json json = ToJson(part);
    if (include_usage_) json["usage"] = part.has_usage() ? ToJson(part.usage()) : ordered_json();
    return Event(DumpJson(json));
  }
  std::string WriteEnd(const absl::Status& status) override {
    return Event(status.ok() ? "[DONE]" : OpenAiError(status).body);
  }

 private:
  static std::string Event(const std::string& data) { return absl::StrCat("data: ", data, "\n\n"); }

  bool include_usage_ = false;
};

class ModelsCodec final : public HttpCodec {
 public:
  ModelsCodec(std::string name, int64_t created) : name_(std::move(name)), created_(created) {}

  absl::Status ReadRequest(HttpRequest& /*request*/, google::protobuf::Message& message) override {
    static_cast<openai::ModelsRequest&>(message).set_name(name_);
    return absl::OkStatus();
  }
  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    ordered_json models = ordered_json::array();
    for (const std::string& name : static_cast<const openai::ModelsAnswer&>(answer).names()) {
      models.push_back({{"id", name}, {"object", "model"}, {"created", created_}, {"owned_by", "longshort"}});
    }
    const ordered_json json = name_.empty() ? ordered_json{{"object", "list"}, {"data", std::move(models)}} : models[0];
    return HttpResponse{.body = DumpJson(json), .content_type = kJsonType};
  }
  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }

 private:
  const std::string name_;
  const int64_t created_;
};

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

HttpResponse OpenAiError(const absl::Status& status) {
  const int http_status = HttpStatusOf(status);
  const std::string_view message(status.message().data(), status.message().size());
  std::optional<std::string_view> field;
  if (http_status == 400) field = FieldIn(message);
  if (http_status == 404) field = "model";
  return ErrorAnswer(http_status, message, field, KindOf(http_status));
}

HttpResponse UnknownUrl(std::string_view message) {
  return ErrorAnswer(404, message, std::nullopt, {"invalid_request_error", "unknown_url"});
}

std::unique_ptr<HttpCodec> MakeCompletionsCodec() { return std::make_unique<CompletionsCodec>(); }

std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name, int64_t created) {
  return std::make_unique<ModelsCodec>(std::move(name), created);
}

}  // namespace longshort::server
