#include "server/http_rpc/openapi.h"

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "longshort_version.h"
#include "nlohmann/json.hpp"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

json Reference(const std::string& name) { return {{"$ref", absl::StrCat("#/components/schemas/", name)}}; }

// Writes the schemas of messages, and of the messages in their fields.
class Schemas final {
 public:
  // The schema of the message, by reference.
  json Of(const Descriptor& message) {
    if (message.full_name() == "google.protobuf.Value") return json::object();
    if (message.full_name() == "google.protobuf.Struct") return {{"type", "object"}};
    if (known_.insert(&message).second) waiting_.push_back(&message);
    return Reference(message.full_name());
  }

  json Write() {
    json schemas = json::object();
    for (; !waiting_.empty(); waiting_.pop_front()) {
      const Descriptor& message = *waiting_.front();
      json properties = json::object();
      for (int i = 0; i < message.field_count(); ++i) {
        properties[message.field(i)->json_name()] = OfField(*message.field(i));
      }
      schemas[message.full_name()] = {{"type", "object"}, {"properties", std::move(properties)}};
    }
    return schemas;
  }

 private:
  json OfField(const FieldDescriptor& field) {
    if (field.is_map()) {
      return {{"type", "object"}, {"additionalProperties", OfValue(*field.message_type()->map_value())}};
    }
    return field.is_repeated() ? json{{"type", "array"}, {"items", OfValue(field)}} : OfValue(field);
  }

  // Protobuf's JSON mapping: 64-bit integers are strings.
  json OfValue(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return {{"type", "integer"}, {"format", "int32"}};
      case FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"minimum", 0}};
      case FieldDescriptor::CPPTYPE_INT64:
        return {{"type", "string"}, {"pattern", "^-?[0-9]+$"}};
      case FieldDescriptor::CPPTYPE_UINT64:
        return {{"type", "string"}, {"pattern", "^[0-9]+$"}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return {{"type", "number"}, {"format", "double"}};
      case FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", "number"}, {"format", "float"}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_ENUM:
        return OfEnum(*field.enum_type());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Of(*field.message_type());
      case FieldDescriptor::CPPTYPE_STRING:
        break;
    }
    if (field.type() != FieldDescriptor::TYPE_BYTES) return {{"type", "string"}};
    return {{"type", "string"}, {"contentEncoding", "base64"}};
  }

  static json OfEnum(const EnumDescriptor& values) {
    json names = json::array();
    for (int i = 0; i < values.value_count(); ++i) names.push_back(values.value(i)->name());
    return {{"type", "string"}, {"enum", std::move(names)}};
  }

  std::set<const Descriptor*> known_;
  std::deque<const Descriptor*> waiting_;
};

json ContentOf(const std::vector<HttpContent>& contents, Schemas& schemas) {
  json content = json::object();
  for (const HttpContent& one : contents) {
    content[one.type]["schema"] = one.message == nullptr ? json::parse(one.schema) : schemas.Of(*one.message);
  }
  return content;
}

// The parameters in braces.
std::vector<std::string> PathParameters(const std::string& path) {
  std::vector<std::string> names;
  for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    names.push_back(path.substr(at + 1, path.find('}', at) - at - 1));
  }
  return names;
}

json Describe(const HttpOperation& operation, bool with_token, Schemas& schemas) {
  json parameters = json::array();
  for (const std::string& name : PathParameters(operation.path)) {
    parameters.push_back({{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  for (const std::string& name : operation.query) {
    parameters.push_back({{"name", name}, {"in", "query"}, {"schema", {{"type", "string"}}}});
  }
  json described = {{"tags", {operation.tag}},
                    {"operationId", operation.id},
                    {"summary", operation.summary},
                    {"responses",
                     {{"200", {{"description", "The answer."}, {"content", ContentOf(operation.answers, schemas)}}},
                      {"default", {{"$ref", "#/components/responses/error"}}}}}};
  if (!parameters.empty()) described["parameters"] = std::move(parameters);
  if (!operation.requests.empty()) {
    described["requestBody"] = {{"required", true}, {"content", ContentOf(operation.requests, schemas)}};
  }
  if (with_token) described["security"] = {{{"token", json::array()}}};
  return described;
}

}  // namespace

std::vector<HttpOperation> ConnectOperations(const std::vector<Rpc>& rpcs) {
  constexpr char kEnvelopes[] = R"({"type": "string", "contentEncoding": "binary"})";
  std::vector<HttpOperation> operations;
  for (const Rpc& rpc : rpcs) {
    if (rpc.kind == RpcKind::kBidirectional) continue;
    const bool is_unary = rpc.kind == RpcKind::kUnary;
    const std::string method = rpc.names.method();
    HttpOperation operation{.method = "post",
                            .path = absl::StrCat("/", method),
                            .tag = std::string(ServiceOf(rpc)),
                            .id = rpc.names.rpc(),
                            .summary = absl::StrCat("The RPC ", method)};
    if (is_unary) {
      operation.requests = {{.message = rpc.request->GetDescriptor()}};
      operation.answers = {{.message = rpc.response->GetDescriptor()}};
    } else {
      operation.summary += ", a stream of JSON messages in the Connect protocol's envelopes";
      operation.requests = {{.type = "application/connect+json", .schema = kEnvelopes}};
      operation.answers = {{.type = "application/connect+json", .schema = kEnvelopes}};
    }
    operations.push_back(std::move(operation));
  }
  return operations;
}

std::string OpenApiDocument(const std::vector<HttpOperation>& operations, bool with_token) {
  Schemas schemas;
  json document = {{"openapi", "3.1.0"},
                   {"info",
                    {{"title", "Longshort"},
                     {"version", kVersion},
                     {"description", "Serves Transformer-LS models. The same calls by gRPC: proto/longshort/v1."}}},
                   {"components",
                    {{"responses",
                      {{"error",
                        {{"description", "An error: its code, as Connect names it, and its message."},
                         {"content", {{"application/json", {{"schema", Reference("Error")}}}}}}}}}}}};
  if (with_token) document["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  document["paths"] = json::object();
  for (const HttpOperation& operation : operations) {
    document["paths"][operation.path][operation.method] = Describe(operation, with_token, schemas);
  }
  document["components"]["schemas"] = schemas.Write();
  document["components"]["schemas"]["Error"] = {
      {"type", "object"}, {"properties", {{"code", {{"type", "string"}}}, {"message", {{"type", "string"}}}}}};
  return document.dump(1);
}

HttpFront OpenApiFront(std::string document) {
  const auto shared = std::make_shared<const std::string>(std::move(document));
  return [shared](const HttpRequest& head) -> std::optional<HttpPlan> {
    if (head.path != "/openapi.json") return std::nullopt;
    return HttpPlan{
        .methods = {"GET"}, .serve = [shared](const std::shared_ptr<HttpExchange>& exchange) {
          exchange->Answer({.shared = {.bytes = *shared, .owner = shared}, .content_type = "application/json"});
        }};
  };
}

}  // namespace longshort::server
