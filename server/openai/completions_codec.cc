#include "server/openai/completions_codec.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/http/http_status.h"
#include "server/openai/completions_request.h"
#include "server/openai/embeddings.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

// Appends "[ONE,ONE]" with what `append` appends for each element.
template <typename List, typename Append>
void AppendList(const List& list, std::string& json, const Append& append) {
  json += '[';
  for (const auto& one : list) {
    if (json.back() != '[') json += ',';
    append(one);
  }
  json += ']';
}

// Appends the JSON itself: a document of it would take many times its memory.
void AppendLogprobs(const openai::Choice& choice, std::string& json) {
  const auto append_text = [&json](const openai::Token& token) { json += DumpJson(token.text()); };
  const auto append_number = [&json](float number) { json += DumpJson(number); };
  json += R"({"tokens":)";
  AppendList(choice.tokens(), json, append_text);
  json += R"(,"token_logprobs":)";
  AppendList(choice.tokens(), json, [&](const openai::Token& token) {
    token.has_logprob() ? append_number(token.logprob()) : void(json += "null");
  });
  json += R"(,"top_logprobs":)";
  AppendList(choice.tokens(), json, [&](const openai::Token& token) {
    ordered_json top;
    for (const openai::Token& one : token.top()) top[one.text()] = one.logprob();
    if (token.has_logprob()) top.emplace(token.text(), token.logprob());
    json += DumpJson(top);
  });
  json += R"(,"text_offset":)";
  AppendList(choice.tokens(), json, [&](const openai::Token& token) { absl::StrAppend(&json, token.text_offset()); });
  json += '}';
}

ordered_json ToJson(const openai::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens()},
          {"completion_tokens", usage.completion_tokens()},
          {"total_tokens", usage.prompt_tokens() + usage.completion_tokens()},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens()}}}};
}

// `usage`: nullopt if the answer has no such field.
std::string JsonOf(const openai::Completions& answer, const std::optional<ordered_json>& usage) {
  std::string json = absl::StrCat(R"({"id":)", DumpJson(answer.id()), R"(,"object":"text_completion","created":)",
                                  answer.created(), R"(,"model":)", DumpJson(answer.model()), R"(,"choices":)");
  AppendList(answer.choices(), json, [&json](const openai::Choice& choice) {
    absl::StrAppend(&json, R"({"index":)", choice.index(), R"(,"text":)", DumpJson(choice.text()), R"(,"logprobs":)");
    choice.has_logprobs() ? AppendLogprobs(choice, json) : void(json += "null");
    const std::string& reason = choice.finish_reason();
    absl::StrAppend(&json, R"(,"finish_reason":)", reason.empty() ? "null" : DumpJson(reason), "}");
  });
  if (usage.has_value()) absl::StrAppend(&json, R"(,"usage":)", DumpJson(*usage));
  return json + "}";
}

class CompletionsCodec final : public HttpCodec {
 public:
  explicit CompletionsCodec(const RequestLimits& limits) : limits_(limits) {}

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    auto& completions = static_cast<openai::CompletionsRequest&>(message);
    LS_RETURN_IF_ERROR(ReadCompletionsRequest(request.body, limits_, meter, completions));
    include_usage_ = completions.include_usage();
    describes_tokens_ = completions.has_logprobs();
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) override {
    const auto& completions = static_cast<const openai::Completions&>(answer);
    return HttpResponse{.body = JsonOf(completions, ToJson(completions.usage())), .content_type = kJsonType};
  }
  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }
  // A described token has some 12 bytes, and takes 120 as a message and 60 as JSON.
  size_t copies() const override { return describes_tokens_ ? 16 : HttpCodec::copies(); }

  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  absl::StatusOr<std::string> WriteMessage(const google::protobuf::Message& answer) override {
    const auto& part = static_cast<const openai::Completions&>(answer);
    if (part.choices().empty() && !part.has_usage()) return std::string(": keepalive\n\n");
    std::optional<ordered_json> usage;
    if (include_usage_) usage = part.has_usage() ? ToJson(part.usage()) : ordered_json();
    return Event(JsonOf(part, usage));
  }
  std::string WriteEnd(const absl::Status& status) override {
    return Event(status.ok() ? "[DONE]" : OpenAiError(status).body);
  }

 private:
  static std::string Event(const std::string& data) { return absl::StrCat("data: ", data, "\n\n"); }

  const RequestLimits& limits_;
  bool include_usage_ = false;
  bool describes_tokens_ = false;
};

class ModelsCodec final : public HttpCodec {
 public:
  ModelsCodec(std::string name, int64_t created) : name_(std::move(name)), created_(created) {}

  absl::Status ReadRequest(HttpRequest& /*request*/, google::protobuf::Message& message,
                           MemoryMeter& /*meter*/) override {
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
  if (http_status == 400) field = FieldIn(message, {&CompletionsBody(), &EmbeddingsBody()});
  if (http_status == 404) field = "model";
  return ErrorAnswer(http_status, message, field, KindOf(http_status));
}

HttpResponse UnknownUrl(std::string_view message) {
  return ErrorAnswer(404, message, std::nullopt, {"invalid_request_error", "unknown_url"});
}

std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits) {
  return std::make_unique<CompletionsCodec>(limits);
}

std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name, int64_t created) {
  return std::make_unique<ModelsCodec>(std::move(name), created);
}

}  // namespace longshort::server
