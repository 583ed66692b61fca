#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/infer.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/open_inference/rest_messages.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

constexpr char kRoot[] = "/v2";

// A path below kRoot. "*" is a name. "models/*" may be followed by "versions/" and a version, which is not written
// here.
struct Route {
  std::string_view path;
  std::string_view verb;
  std::string_view rpc;
  // For /openapi.json; nothing for a call that the server always refuses.
  std::string_view help = "";
  std::string_view answer = "";   // the type of the answer, or kMessage: that of the RPC
  std::string_view request = "";  // the type of the body
  int not_ready = 0;              // the status of the same answer if something is not ready
};
constexpr char kMessage[] = "message";

constexpr Route kRoutes[] = {
    {"", "GET", "ServerMetadata", "The server's name, version and extensions.", kMessage},
    {"health/live", "GET", "ServerLive", "Whether the process lives.", kMessage},
    {"health/ready", "GET", "ServerReady", "Whether the server serves.", kMessage, "", 503},
    {"models/stats", "GET", "ModelStatistics", "Counts and times of all models.", kMessage},
    {"models/*", "GET", "ModelMetadata", "A model's versions, inputs and outputs.", kMessage},
    {"models/*/ready", "GET", "ModelReady", "Whether a model serves.", "ModelReady", "", 404},
    {"models/*/config", "GET", "ModelConfig", "A model's configuration.", kMessage},
    {"models/*/stats", "GET", "ModelStatistics", "Counts and times of a model.", kMessage},
    {"models/*/infer", "POST", "ModelInfer", "Runs a model.", "InferenceAnswer", "InferenceRequest"},
    {"repository/index", "POST", "RepositoryIndex", "The models of the repository.", kMessage,
     "RepositoryIndexRequest"},
    {"repository/models/*/load", "POST", "RepositoryModelLoad", "Loads a model.", "ModelLoaded", "RepositoryRequest"},
    {"repository/models/*/unload", "POST", "RepositoryModelUnload", "Unloads a model.", "ModelUnloaded",
     "RepositoryRequest"},
    {"systemsharedmemory/status", "GET", "SystemSharedMemoryStatus"},
    {"systemsharedmemory/region/*/status", "GET", "SystemSharedMemoryStatus"},
    {"systemsharedmemory/region/*/register", "POST", "SystemSharedMemoryRegister"},
    {"systemsharedmemory/region/*/unregister", "POST", "SystemSharedMemoryUnregister"},
    {"systemsharedmemory/unregister", "POST", "SystemSharedMemoryUnregister"},
    {"cudasharedmemory/status", "GET", "CudaSharedMemoryStatus"},
    {"cudasharedmemory/region/*/status", "GET", "CudaSharedMemoryStatus"},
    {"cudasharedmemory/region/*/register", "POST", "CudaSharedMemoryRegister"},
    {"cudasharedmemory/region/*/unregister", "POST", "CudaSharedMemoryUnregister"},
    {"cudasharedmemory/unregister", "POST", "CudaSharedMemoryUnregister"},
    {"trace/setting", "GET", "TraceSetting"},
    {"trace/setting", "POST", "TraceSetting"},
    {"models/*/trace/setting", "GET", "TraceSetting"},
    {"models/*/trace/setting", "POST", "TraceSetting"},
    {"logging", "GET", "LogSettings"},
    {"logging", "POST", "LogSettings"},
};

struct Place {
  std::string path;  // as in kRoutes
  RestTarget target;
};

// nullopt if a name is not coded correctly.
std::optional<Place> ReadPath(std::string_view path) {
  std::vector<std::string> segments = absl::StrSplit(absl::string_view(path.data(), path.size()), '/');
  Place place;
  const auto take = [&](size_t index, std::string& text) {
    std::optional<std::string> decoded = DecodePercent(segments[index]);
    if (!decoded.has_value() || decoded->empty()) return false;
    text = *std::move(decoded);
    return true;
  };
  // Where a name is: models/NAME, repository/models/NAME, systemsharedmemory/region/NAME.
  const bool is_model = segments.size() >= 2 && segments[0] == "models" && path != "models/stats";
  const size_t name = is_model ? 1 : 2;
  if (is_model || (segments.size() >= 3 && segments[0] != "models")) {
    if (!take(name, place.target.name)) return std::nullopt;
    segments[name] = "*";
  }
  if (is_model && segments.size() >= 4 && segments[2] == "versions") {
    if (!take(3, place.target.version)) return std::nullopt;
    segments.erase(segments.begin() + 2, segments.begin() + 4);
  }
  place.path = absl::StrJoin(segments, "/");
  return place;
}

}  // namespace

HttpFront OpenInferenceFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs) {
  std::map<std::string, const Rpc*, std::less<>> by_name;
  for (const Rpc& rpc : rpcs) {
    const std::string_view method = rpc.names.method();
    by_name.emplace(method.substr(method.find('/') + 1), &rpc);
  }
  return [&environment, by_name = std::move(by_name)](const HttpRequest& head) -> std::optional<HttpPlan> {
    std::string_view path = head.path;
    if (path.substr(0, sizeof(kRoot) - 1) != kRoot) return std::nullopt;
    path.remove_prefix(sizeof(kRoot) - 1);
    if (!path.empty() && path.front() != '/') return std::nullopt;
    if (!path.empty()) path.remove_prefix(1);

    const std::optional<Place> place = ReadPath(path);
    HttpPlan plan{.write_error = RestError};
    for (const Route& route : kRoutes) {
      if (!place.has_value() || route.path != place->path) continue;
      plan.methods.emplace_back(route.verb);
      if (route.verb != head.method) continue;
      const Rpc& rpc = *by_name.find(route.rpc)->second;
      const int64_t max_message_bytes = environment.limits.message_bytes;
      const auto make_codec = [&rpc, max_message_bytes, target = place->target](
                                  const HttpRequest& request) -> absl::StatusOr<std::unique_ptr<HttpCodec>> {
        // Bodies of any other type are read as JSON, whatever the client says that they are.
        if (request.MediaType() != kFormType) return MakeRestCodec(rpc, target, max_message_bytes);
        return HttpError(415, absl::StrCat("the content type is ", Quoted(kFormType),
                                           "; the Open Inference Protocol takes "
                                           "application/json, or application/octet-stream with binary data"));
      };
      ServeCalls(environment, rpc, route.verb == "POST" ? MaxUnpackedBytes(max_message_bytes) : 0, make_codec, plan);
    }
    if (plan.methods.empty()) {
      plan.serve = AnswerWith(RestError(
          absl::NotFoundError(absl::StrCat(Quoted(head.path),
                                           " is not a path of the Open Inference Protocol; /v2/models/NAME and "
                                           "/v2/models/NAME/infer are, for example"))));
    }
    return plan;
  };
}

namespace {

const ErrorForm kRestErrors = {
    .name = "OpenInferenceError", .help = "An error.", .content = {.type = "OpenInferenceError"}};

HttpContent AnswerOf(const Route& route) {
  const auto& file = *inference::ModelInferRequest::descriptor()->file();
  HttpContent content{.type = route.answer, .form = JsonForm::kPlain};
  if (route.answer != kMessage) return content;
  content.message = file.service(0)->FindMethodByName(std::string(route.rpc))->output_type();
  if (route.rpc == "ModelConfig") content.message = inference::ModelConfig::descriptor();
  if (route.rpc == "RepositoryIndex") {
    content.message = inference::RepositoryIndexResponse::ModelIndex::descriptor();
    content.is_list = true;
  }
  return content;
}

HttpOperation Describe(const Route& route) {
  const std::string path = absl::StrCat(kRoot, route.path.empty() ? "" : "/",
                                        absl::StrReplaceAll(std::string(route.path), {{"*", "{name}"}}));
  HttpOperation operation{.method = absl::AsciiStrToLower(std::string(route.verb)),
                          .path = path,
                          .tag = "Open Inference Protocol",
                          .id = absl::StrCat(path == "/v2/models/stats" ? "All" : "", std::string(route.rpc)),
                          .summary = std::string(route.help),
                          .answers = {AnswerOf(route)},
                          .errors = &kRestErrors};
  if (absl::StrContains(path, "{name}")) operation.parameters = {{"name", "string", "The model's name."}};
  if (!route.request.empty()) operation.requests = {{.type = route.request}};
  if (route.rpc == "ModelInfer") {
    operation.requests.push_back({.media_type = kBytesType, .type = "bytes"});
    operation.answers.push_back({.media_type = kBytesType, .type = "bytes"});
    operation.parameters.push_back({.name = "Inference-Header-Content-Length",
                                    .type = "integer",
                                    .help = "How many bytes of the body are JSON, if binary data follow.",
                                    .is_header = true});
  }
  if (route.not_ready != 0) operation.others = {{route.not_ready, "The same, if it is not ready.", AnswerOf(route)}};
  return operation;
}

}  // namespace

HttpDescription OpenInferenceDescription() {
  HttpDescription described;
  described.schemas = RestSchemas();
  described.schemas.push_back(
      {.name = "InferenceParameters", .kind = BodyKind::kRequest, .fields = InferenceParameterFields()});
  for (const Route& route : kRoutes) {
    if (route.answer.empty()) continue;
    described.operations.push_back(Describe(route));
    if (!absl::StartsWith({route.path.data(), route.path.size()}, "models/*")) continue;
    HttpOperation versioned = described.operations.back();
    versioned.path = absl::StrReplaceAll(versioned.path, {{"{name}", "{name}/versions/{version}"}});
    versioned.parameters.push_back({"version", "string", "The model's version."});
    versioned.id += "OfVersion";
    described.operations.push_back(std::move(versioned));
  }
  return described;
}

}  // namespace longshort::server
