#include "server/open_inference_v2/rest_front.h"

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
#include "server/calls/field_error.h"
#include "server/http/http_query.h"
#include "server/http/http_status.h"
#include "server/http_rpc/http_call.h"
#include "server/open_inference_v2/rest_codec.h"

namespace longshort::server {
namespace {

constexpr char kRoot[] = "/v2";
constexpr char kForm[] = "multipart/form-data";

constexpr char kObject[] = R"({"type": "object"})";
constexpr char kObjects[] = R"({"type": "array", "items": {"type": "object"}})";
constexpr char kInferRequest[] = R"({"type": "object", "required": ["inputs"], "properties": {
  "id": {"type": "string"},
  "parameters": {"type": "object"},
  "inputs": {"type": "array", "items": {"type": "object", "required": ["name", "shape", "datatype"], "properties": {
    "name": {"type": "string"},
    "shape": {"type": "array", "items": {"type": "integer"}},
    "datatype": {"type": "string"},
    "parameters": {"type": "object"},
    "data": {"type": "array", "items": {}}}}},
  "outputs": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string"},
    "parameters": {"type": "object"}}}}}})";
constexpr char kInferAnswer[] = R"({"type": "object", "properties": {
  "model_name": {"type": "string"},
  "model_version": {"type": "string"},
  "id": {"type": "string"},
  "parameters": {"type": "object"},
  "outputs": {"type": "array", "items": {"type": "object", "properties": {
    "name": {"type": "string"},
    "datatype": {"type": "string"},
    "shape": {"type": "array", "items": {"type": "integer"}},
    "parameters": {"type": "object"},
    "data": {"type": "array", "items": {}}}}}}})";

// A path below kRoot. "*" is a name. "models/*" may be followed by "versions/" and a version, which is not written
// here.
struct Route {
  std::string_view path;
  std::string_view verb;
  std::string_view rpc;
  // JSON schemas of the bodies; nullptr for a call that the server always refuses.
  const char* answer = nullptr;
  const char* request = nullptr;
};

constexpr Route kRoutes[] = {
    {"", "GET", "ServerMetadata", kObject},
    {"health/live", "GET", "ServerLive", kObject},
    {"health/ready", "GET", "ServerReady", kObject},
    {"models/stats", "GET", "ModelStatistics", kObject},
    {"models/*", "GET", "ModelMetadata", kObject},
    {"models/*/ready", "GET", "ModelReady", kObject},
    {"models/*/config", "GET", "ModelConfig", kObject},
    {"models/*/stats", "GET", "ModelStatistics", kObject},
    {"models/*/infer", "POST", "ModelInfer", kInferAnswer, kInferRequest},
    {"repository/index", "POST", "RepositoryIndex", kObjects, kObject},
    {"repository/models/*/load", "POST", "RepositoryModelLoad", kObject, kObject},
    {"repository/models/*/unload", "POST", "RepositoryModelUnload", kObject, kObject},
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
      plan.is_call = !rpc.names.observes();
      const size_t max_body_bytes = route.verb == "POST" ? MaxUnpackedBytes(environment.limits.message_bytes) : 0;
      plan.serve = [&environment, &rpc, max_body_bytes,
                    target = place->target](const std::shared_ptr<HttpExchange>& exchange) {
        // Bodies of any other type are read as JSON, whatever the client says that they are.
        if (exchange->request().MediaType() == kForm) {
          return exchange->Answer(RestError(
              HttpError(415, absl::StrCat("the content type is ", Quoted(kForm),
                                          "; the Open Inference Protocol takes "
                                          "application/json, or application/octet-stream with binary data"))));
        }
        HttpCall::Start(environment, rpc, exchange, MakeRestCodec(rpc, target, environment.limits.message_bytes),
                        max_body_bytes);
      };
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

std::vector<HttpOperation> OpenInferenceOperations() {
  std::vector<HttpOperation> operations;
  for (const Route& route : kRoutes) {
    if (route.answer == nullptr) continue;
    const std::string path = absl::StrCat(kRoot, route.path.empty() ? "" : "/",
                                          absl::StrReplaceAll(std::string(route.path), {{"*", "{name}"}}));
    HttpOperation operation{.method = absl::AsciiStrToLower(std::string(route.verb)),
                            .path = path,
                            .tag = "Open Inference Protocol",
                            .id = absl::StrCat(path == "/v2/models/stats" ? "All" : "", std::string(route.rpc)),
                            .summary = absl::StrCat("The RPC ", std::string(route.rpc)),
                            .answers = {{.schema = route.answer}}};
    if (route.request != nullptr) operation.requests = {{.schema = route.request}};
    operations.push_back(operation);
    if (!absl::StartsWith(path, "/v2/models/{name}")) continue;
    operation.path = absl::StrReplaceAll(path, {{"{name}", "{name}/versions/{version}"}});
    operation.id += "OfVersion";
    operations.push_back(std::move(operation));
  }
  return operations;
}

}  // namespace longshort::server
