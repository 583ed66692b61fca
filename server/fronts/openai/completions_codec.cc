#include "server/fronts/openai/completions_codec.h"

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "server/fronts/openai/completion_answer.h"
#include "server/fronts/openai/completions_request.h"
#include "server/fronts/openai/embeddings.h"
#include "server/transports/http/http_status.h"

namespace longshort::server {
namespace {

using nlohmann::ordered_json;

class CompletionsCodec final : public HttpCodec {
 public:
  explicit CompletionsCodec(const RequestLimits& limits) : limits_(limits) {}

  absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) override {
    auto& completions = static_cast<openai::CompletionsRequest&>(message);
    LS_RETURN_IF_ERROR(ReadCompletionsRequest(request.body, limits_, meter, completions));
    describes_tokens_ = completions.has_logprobs();
    return absl::OkStatus();
  }

  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }
  // A described token counts as 12 bytes, and takes 32 in the result and 60 as JSON.
  size_t copies() const override { return describes_tokens_ ? 16 : HttpCodec::copies(); }

  std::string stream_content_type() const override { return "text/event-stream; charset=utf-8"; }
  std::string WriteEnd(const absl::Status& status) override {
    return ServerSentEvent(status.ok() ? "[DONE]" : OpenAiError(status).body);
  }

 private:
  const RequestLimits& limits_;
  bool describes_tokens_ = false;
};

class ModelsCodec final : public HttpCodec {
 public:
  explicit ModelsCodec(std::string name) : name_(std::move(name)) {}

  absl::Status ReadRequest(HttpRequest& /*request*/, google::protobuf::Message& message,
                           MemoryMeter& /*meter*/) override {
    static_cast<openai::ModelsRequest&>(message).set_name(name_);
    return absl::OkStatus();
  }
  HttpResponse WriteError(const absl::Status& status) override { return OpenAiError(status); }

 private:
  const std::string name_;
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

CallAnswer ShortAnswer(const ordered_json& json) {
  std::string text = DumpJson(json);
  const size_t bytes = text.size();
  return JsonAnswer(bytes, [text = std::move(text)] { return text; });
}

std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits) {
  return std::make_unique<CompletionsCodec>(limits);
}

std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name) { return std::make_unique<ModelsCodec>(std::move(name)); }

}  // namespace longshort::server
