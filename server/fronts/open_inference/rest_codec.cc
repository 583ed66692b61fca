#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "open_inference/v2/service.pb.h"
#include "server/calls/call_names.h"
#include "server/fronts/json/json_message.h"
#include "server/fronts/open_inference/model_tensors.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/open_inference/rest_messages.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using google::protobuf::Message;
using nlohmann::ordered_json;

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

HttpResponse JsonResponse(std::string json, int status = 200) {
  return {.status = status, .body = std::move(json), .content_type = kJsonType};
}

HttpResponse JsonResponse(const ordered_json& json, int status = 200) { return JsonResponse(DumpJson(json), status); }

std::string PlainJson(const Message& message) { return WriteJson(message, JsonForm::kPlain); }

// Sets a string field, if the message has it.
void SetText(const char* field, const std::string& value, Message& message) {
  const google::protobuf::FieldDescriptor* const found = message.GetDescriptor()->FindFieldByName(field);
  if (found != nullptr) message.GetReflection()->SetString(&message, found, value);
}

class RestCodec : public HttpCodec {
 public:
  HttpResponse WriteError(const absl::Status& status) override { return RestError(status); }
};

class InferCodec final : public RestCodec {
 public:
  InferCodec(RestTarget target, int64_t max_message_bytes)
      : target_(std::move(target)), max_message_bytes_(max_message_bytes) {}

  absl::Status ReadRequest(HttpRequest& request, Message& message, MemoryMeter& meter) override {
    auto& infer = static_cast<inference::ModelInferRequest&>(message);
    const std::string_view body = request.body;
    LS_ASSIGN_OR_RETURN(const size_t json_bytes, JsonBytes(request));
    infer.set_model_name(target_.name);
    infer.set_model_version(target_.version);
    if (json_bytes == 0 && !body.empty()) {
      binary_.by_default = true;
      LS_RETURN_IF_ERROR(meter.Add(HeapBytesOfText(request.body.capacity())));
      SetRawBinaryInput(std::move(request.body), infer);
      return absl::OkStatus();
    }
    const absl::Status read =
        ReadRestRequest(body.substr(0, json_bytes), body.substr(json_bytes), max_message_bytes_, meter, infer, binary_);
    return absl::IsResourceExhausted(read) ? HttpError(413, std::string(read.message())) : read;
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const Message& answer) override {
    LS_ASSIGN_OR_RETURN(RestAnswer written,
                        WriteRestAnswer(static_cast<const inference::ModelInferResponse&>(answer), binary_));
    HttpResponse response{.body = std::move(written.body), .content_type = kJsonType};
    if (written.json_bytes.has_value()) {
      response.content_type = kBytesType;
      response.fields.emplace_back(kHeaderLength, absl::StrCat(*written.json_bytes));
    }
    return response;
  }

 private:
  // How much of the body is JSON.
  static absl::StatusOr<size_t> JsonBytes(const HttpRequest& request) {
    const std::optional<std::string> given = request.Find("inference-header-content-length");
    if (!given.has_value()) return request.body.size();
    uint64_t bytes = 0;
    const bool is_number = absl::ascii_isdigit(static_cast<unsigned char>(given->empty() ? ' ' : given->front())) &&
                           absl::SimpleAtoi(*given, &bytes);
    if (is_number && bytes <= request.body.size()) return bytes;
    return FieldError(kHeaderLength, Quoted(*given),
                      absl::StrCat("the length of the JSON, at most ", request.body.size(),
                                   ", the body's length; 0 if the body is the model's only input"));
  }

  const RestTarget target_;
  const int64_t max_message_bytes_;
  BinaryOutputs binary_;
};

class PlainCodec final : public RestCodec {
 public:
  explicit PlainCodec(RestTarget target) : target_(std::move(target)) {}

  absl::Status ReadRequest(HttpRequest& request, Message& message, MemoryMeter& meter) override {
    SetText("name", target_.name, message);
    SetText("version", target_.version, message);
    SetText("model_name", target_.name, message);
    if (auto* const index = dynamic_cast<inference::RepositoryIndexRequest*>(&message); index != nullptr) {
      return ReadIndex(request.body, meter, *index);
    }
    if (auto* const load = dynamic_cast<inference::RepositoryModelLoadRequest*>(&message); load != nullptr) {
      return ReadParameters(request.body, meter, *load->mutable_parameters());
    }
    if (auto* const unload = dynamic_cast<inference::RepositoryModelUnloadRequest*>(&message); unload != nullptr) {
      return ReadParameters(request.body, meter, *unload->mutable_parameters());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<HttpResponse> WriteAnswer(const Message& answer) override {
    constexpr int kNotFound = 404, kUnavailable = 503;
    if (const auto* ready = dynamic_cast<const inference::ServerReadyResponse*>(&answer); ready != nullptr) {
      return JsonResponse(PlainJson(answer), ready->ready() ? 200 : kUnavailable);
    }
    if (const auto* ready = dynamic_cast<const inference::ModelReadyResponse*>(&answer); ready != nullptr) {
      return JsonResponse(ordered_json{{"name", target_.name}, {"ready", ready->ready()}},
                          ready->ready() ? 200 : kNotFound);
    }
    if (const auto* config = dynamic_cast<const inference::ModelConfigResponse*>(&answer); config != nullptr) {
      return JsonResponse(PlainJson(config->config()));
    }
    if (const auto* index = dynamic_cast<const inference::RepositoryIndexResponse*>(&answer); index != nullptr) {
      const auto append = [](std::string* list, const Message& one) { list->append(PlainJson(one)); };
      return JsonResponse(absl::StrCat("[", absl::StrJoin(index->models(), ",", append), "]"));
    }
    if (dynamic_cast<const inference::RepositoryModelLoadResponse*>(&answer) != nullptr) {
      return JsonResponse(ordered_json{{"name", target_.name}, {"load", true}});
    }
    if (dynamic_cast<const inference::RepositoryModelUnloadResponse*>(&answer) != nullptr) {
      return JsonResponse(ordered_json{{"name", target_.name}, {"unload", true}});
    }
    const bool is_empty = answer.GetDescriptor()->field_count() == 0;  // a list of shared memory, or of nothing
    return JsonResponse(is_empty ? "[]" : PlainJson(answer));
  }

 private:
  static constexpr JsonLimits kLimits = {.depth = 8, .elements = 1024};

  // An empty body is an empty object.
  static absl::StatusOr<nlohmann::json> ReadObject(const std::string& body, MemoryMeter& meter, RestBody kind) {
    if (body.empty()) return nlohmann::json::object();
    LS_ASSIGN_OR_RETURN(nlohmann::json object, ParseJsonObject(body, "the request", kLimits, &meter));
    LS_RETURN_IF_ERROR(CheckFields(JsonView(object), kind));
    return object;
  }

  static absl::Status ReadIndex(const std::string& body, MemoryMeter& meter,
                                inference::RepositoryIndexRequest& request) {
    LS_ASSIGN_OR_RETURN(nlohmann::json object, ReadObject(body, meter, RestBody::kIndexRequest));
    const JsonView ready = JsonView(object).At("ready");
    if (ready.is_absent()) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const bool is_ready, ready.Boolean());
    request.set_ready(is_ready);
    return absl::OkStatus();
  }

  // Only the names: the RPCs refuse all but one, whose value does not matter.
  static absl::Status ReadParameters(
      const std::string& body, MemoryMeter& meter,
      google::protobuf::Map<std::string, inference::ModelRepositoryParameter>& parameters) {
    LS_ASSIGN_OR_RETURN(nlohmann::json object, ReadObject(body, meter, RestBody::kLoadRequest));
    const JsonView given = JsonView(object).At("parameters");
    if (given.is_absent()) return absl::OkStatus();
    if (!given.is_object()) return given.Wrong("an object");
    LS_RETURN_IF_ERROR(meter.Add(meter.held()));  // the names, again
    for (const auto& [name, value] : given.value().items()) parameters[name];
    return absl::OkStatus();
  }

  const RestTarget target_;
};

}  // namespace

std::unique_ptr<HttpCodec> MakeRestCodec(const Rpc& rpc, RestTarget target, int64_t max_message_bytes) {
  const bool infers = rpc.request->GetDescriptor() == inference::ModelInferRequest::descriptor();
  if (infers) return std::make_unique<InferCodec>(std::move(target), max_message_bytes);
  return std::make_unique<PlainCodec>(std::move(target));
}

HttpResponse RestError(const absl::Status& status) {
  return JsonResponse(ordered_json{{"error", std::string(status.message())}}, HttpStatusOf(status));
}

}  // namespace longshort::server
