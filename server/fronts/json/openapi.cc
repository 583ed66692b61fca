#include "server/fronts/json/openapi.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "longshort_version.h"
#include "nlohmann/json.hpp"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

constexpr char kText[] = "text/plain";

Json Reference(std::string_view place, std::string_view name) {
  return {{"$ref", absl::StrCat("#/components/", std::string(place), "/", std::string(name))}};
}

// Writes #/components/schemas: named schemas, messages, and the messages in their fields.
class Schemas final {
 public:
  Json Of(const HttpContent& content) {
    if (content.message == nullptr) return OfType(content.type);
    const Json one = Of(*content.message, content.form);
    return content.is_list ? Json{{"type", "array"}, {"items", one}} : one;
  }

  // A type of a SchemaField.
  static Json OfType(std::string_view type) {
    if (type.starts_with("{\"")) return Json::parse(type);
    if (type.ends_with('?')) return {{"anyOf", {OfType(type.substr(0, type.size() - 1)), {{"type", "null"}}}}};
    if (type.starts_with('[')) return {{"type", "array"}, {"items", OfType(type.substr(1, type.size() - 2))}};
    if (type.starts_with('{')) {
      return {{"type", "object"}, {"additionalProperties", OfType(type.substr(1, type.size() - 2))}};
    }
    if (type.find('|') != std::string_view::npos) {
      const std::vector<std::string> words = absl::StrSplit(std::string(type), '|');
      return {{"type", "string"}, {"enum", words}};
    }
    if (type == "any") return Json::object();
    if (type == "bytes") return {{"type", "string"}, {"format", "binary"}};
    for (const std::string_view plain : {"string", "integer", "number", "boolean"}) {
      if (type == plain) return {{"type", plain}};
    }
    return Reference("schemas", type);
  }

  void Add(const NamedSchema& named) {
    Json schema = {{"type", "object"}};
    for (const SchemaField& field : named.fields) {
      Json& described = schema["properties"][std::string(field.name)] = OfType(field.type);
      if (!field.help.empty()) described["description"] = field.help;
      if (field.preset.has_value()) {
        described["default"] = field.type == "boolean" ? Json(*field.preset != 0) : NumberOf(*field.preset);
      }
      if (field.low.has_value()) described["minimum"] = NumberOf(*field.low);
      const bool is_required = named.kind == BodyKind::kAnswer ? !field.optional : field.required;
      if (is_required) schema["required"].push_back(field.name);
    }
    schemas_[std::string(named.name)] = std::move(schema);
  }

  std::string CommentOf(const std::string& full_name) const { return comments_.Of(full_name); }
  Json Write() { return std::move(schemas_); }

 private:
  static Json NumberOf(double value) {
    const std::optional<int64_t> whole = IntegerOf(value);
    return whole.has_value() ? Json(*whole) : Json(value);
  }

  // The schema of the message, by reference.
  Json Of(const Descriptor& message, JsonForm form) {
    if (message.full_name() == "google.protobuf.Value") return Json::object();
    if (message.full_name() == "google.protobuf.Struct") return {{"type", "object"}};
    if (!schemas_.contains(message.full_name())) {
      schemas_[message.full_name()] = {};  // a message may have itself as a field
      Json schema = {{"type", "object"}};
      if (std::string comment = CommentOf(message.full_name()); !comment.empty()) schema["description"] = comment;
      for (int i = 0; i < message.field_count(); ++i) {
        const FieldDescriptor& field = *message.field(i);
        const std::string name = form == JsonForm::kPlain ? field.name() : field.json_name();
        Json& described = schema["properties"][name] = OfField(field, form);
        if (std::string comment = CommentOf(field.full_name()); !comment.empty()) described["description"] = comment;
        if (form == JsonForm::kPlain && !field.has_presence()) schema["required"].push_back(name);
      }
      schemas_[message.full_name()] = std::move(schema);
    }
    return Reference("schemas", message.full_name());
  }

  Json OfField(const FieldDescriptor& field, JsonForm form) {
    if (field.is_map()) {
      return {{"type", "object"}, {"additionalProperties", OfValue(*field.message_type()->map_value(), form)}};
    }
    return field.is_repeated() ? Json{{"type", "array"}, {"items", OfValue(field, form)}} : OfValue(field, form);
  }

  // Protobuf's JSON mapping has 64-bit integers as strings.
  Json OfValue(const FieldDescriptor& field, JsonForm form) {
    const bool is_plain = form == JsonForm::kPlain;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return {{"type", "integer"}, {"format", "int32"}};
      case FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"minimum", 0}};
      case FieldDescriptor::CPPTYPE_INT64:
        return is_plain ? Json{{"type", "integer"}} : Json{{"type", "string"}, {"pattern", "^-?[0-9]+$"}};
      case FieldDescriptor::CPPTYPE_UINT64:
        return is_plain ? Json{{"type", "integer"}, {"minimum", 0}} : Json{{"type", "string"}, {"pattern", "^[0-9]+$"}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return {{"type", "number"}, {"format", "double"}};
      case FieldDescriptor::CPPTYPE_FLOAT:
        return {{"type", "number"}, {"format", "float"}};
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_ENUM:
        return OfEnum(*field.enum_type());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Of(*field.message_type(), form);
      case FieldDescriptor::CPPTYPE_STRING:
        break;
    }
    if (field.type() != FieldDescriptor::TYPE_BYTES) return {{"type", "string"}};
    return {{"type", "string"}, {"contentEncoding", "base64"}};
  }

  static Json OfEnum(const EnumDescriptor& values) {
    Json names = Json::array();
    for (int i = 0; i < values.value_count(); ++i) names.push_back(values.value(i)->name());
    return {{"type", "string"}, {"enum", std::move(names)}};
  }

  const ProtoComments comments_;
  Json schemas_ = Json::object();
};

// The paths, and the responses that they refer to.
class Paths final {
 public:
  Paths(bool with_token, Schemas& schemas) : with_token_(with_token), schemas_(schemas) {}

  void Add(const HttpOperation& operation) {
    Json described = {{"tags", {operation.tag}}, {"operationId", operation.id}, {"summary", operation.summary}};
    if (const std::string comment = schemas_.CommentOf(operation.rpc); !comment.empty()) {
      described["description"] = comment;
    }
    for (const HttpParameter& one : operation.parameters) described["parameters"].push_back(Of(one, operation.path));
    if (!operation.requests.empty()) {
      described["requestBody"] = {{"required", true}, {"content", Of(operation.requests)}};
    }
    Json& responses = described["responses"];
    responses["200"] = {{"description", "The answer."}, {"content", Of(operation.answers)}};
    for (const HttpAnswer& one : operation.others) {
      responses[absl::StrCat(one.status)] = {{"description", one.help}, {"content", Of({one.content})}};
    }
    if (operation.errors != nullptr) responses["default"] = Of(*operation.errors);
    if (with_token_ && !operation.is_public) described["security"] = {{{"token", Json::array()}}};
    paths_[operation.path][operation.method] = std::move(described);
  }

  Json paths() { return std::move(paths_); }
  Json responses() { return std::move(responses_); }

 private:
  Json Of(const std::vector<HttpContent>& contents) {
    Json content = Json::object();
    for (const HttpContent& one : contents) content[one.media_type]["schema"] = schemas_.Of(one);
    return content;
  }

  static Json Of(const HttpParameter& parameter, const std::string& path) {
    const bool in_path = absl::StrContains(path, absl::StrCat("{", std::string(parameter.name), "}"));
    return {{"name", parameter.name},
            {"in", in_path               ? "path"
                   : parameter.is_header ? "header"
                                         : "query"},
            {"required", in_path || parameter.required},
            {"description", parameter.help},
            {"schema", Schemas::OfType(parameter.type)}};
  }

  // Refusals that need no protocol, such as that of another origin's page, are plain text.
  Json Of(const ErrorForm& form) {
    const std::string name(form.name);
    if (!responses_.contains(name)) {
      Json& response = responses_[name] = {{"description", form.help}, {"content", Of({form.content})}};
      response["content"][kText]["schema"] = Schemas::OfType("string");
    }
    return Reference("responses", name);
  }

  const bool with_token_;
  Schemas& schemas_;
  Json paths_ = Json::object();
  Json responses_ = Json::object();
};

const ErrorForm kConnectErrors = {.name = "ConnectError",
                                  .help = "An error: its code, as Connect names it, and its message.",
                                  .content = {.type = "ConnectError"}};
const ErrorForm kTextErrors = {
    .name = "TextError", .help = "An error as text.", .content = {.media_type = kText, .type = "string"}};

HttpOperation OfPort(const char* path, const char* id, const char* summary, const HttpContent& answer) {
  return {.method = "get",
          .path = path,
          .tag = "Server",
          .id = id,
          .summary = summary,
          .answers = {answer},
          .errors = &kTextErrors,
          .is_public = true};
}

}  // namespace

HttpDescription PortDescription() {
  const HttpContent text = {.media_type = kText, .type = "string"},
                    html = {.media_type = "text/html", .type = "string"};
  const HttpContent version = {.type = "Version"};
  std::vector<HttpOperation> operations = {
      OfPort("/metrics", "metrics", "Metrics in Prometheus' text format.", text),
      OfPort("/livez", "livez", "Whether the process lives.", text),
      OfPort("/readyz", "readyz", "Whether the server serves: 503 while it loads or stops.", text),
      OfPort("/health", "health", "The same as /readyz.", text),
      OfPort("/version", "version", "The server's version, and whether the caller may read /metrics.", version),
      OfPort("/info", "info", "The same as /version.", version),
      OfPort("/openapi.json", "openapi", "This document.", {.type = "{any}"}),
      OfPort("/docs", "docs", "This document for people.", html),
      OfPort("/", "page", "The page for a browser; for others, a list of the paths.", html),
  };
  operations.front().is_public = false;
  operations.back().answers.push_back(text);
  return {.operations = std::move(operations),
          .schemas = {{.name = "Version",
                       .fields = {{"name", "string", "The server's name."},
                                  {"version", "string", "Its version."},
                                  {"may_read_metrics", "boolean", "Whether the caller may read /metrics."}}}}};
}

HttpDescription ConnectDescription(const std::vector<Rpc>& rpcs) {
  const HttpContent envelopes = {.media_type = "application/connect+json", .type = "bytes"};
  HttpDescription described;
  for (const Rpc& rpc : rpcs) {
    if (rpc.kind == RpcKind::kBidirectional) continue;
    const bool is_unary = rpc.kind == RpcKind::kUnary;
    const std::string method = rpc.names.method();
    HttpOperation operation{.method = "post",
                            .path = absl::StrCat("/", method),
                            .tag = std::string(ServiceOf(rpc)),
                            .id = rpc.names.rpc(),
                            .summary = absl::StrCat("The RPC ", method),
                            .rpc = absl::StrReplaceAll(method, {{"/", "."}}),
                            .errors = &kConnectErrors};
    if (is_unary) {
      operation.requests = {{.message = rpc.request->GetDescriptor()}};
      operation.answers = {{.message = rpc.response->GetDescriptor()}};
    } else {
      operation.summary += ", a stream of JSON messages in the Connect protocol's envelopes";
      operation.requests = operation.answers = {envelopes};
    }
    described.operations.push_back(operation);
    if (!rpc.side_effect_free) continue;
    operation.method = "get";
    operation.id += "ByGet";
    operation.summary += ", with the message in the query";
    operation.requests.clear();
    operation.parameters = {
        {"encoding", "json|proto", "How the message is coded, and the answer.", true},
        {"message", "string", "The request.", true},
        {"base64", R"({"type": "string", "enum": ["1"]})", "Whether the message is in URL-safe base64."}};
    described.operations.push_back(std::move(operation));
  }
  described.schemas = {
      {.name = "ConnectError",
       .fields = {{"code", "string", "The code in Connect's words, such as invalid_argument."},
                  {"message", "string", "What is wrong: the field, its value, and the limit."},
                  {.name = "details", .type = "[ConnectErrorDetail]", .help = "When to retry.", .optional = true}}},
      {.name = "ConnectErrorDetail",
       .fields = {{"type", "string", "The name of a message: google.rpc.RetryInfo."},
                  {"value", "string", "The message as protobuf, in base64 without padding."}}}};
  return described;
}

std::string OpenApiDocument(absl::Span<const HttpDescription> descriptions, bool with_token) {
  Schemas schemas;
  Paths paths(with_token, schemas);
  for (const HttpDescription& description : descriptions) {
    for (const NamedSchema& schema : description.schemas) schemas.Add(schema);
    for (const HttpOperation& operation : description.operations) paths.Add(operation);
  }
  Json document = {{"openapi", "3.1.0"},
                   {"info",
                    {{"title", "Longshort"},
                     {"version", kVersion},
                     {"description", "Serves Transformer-LS models. The same calls by gRPC: proto/longshort/v1."}}},
                   {"paths", paths.paths()},
                   {"components", {{"schemas", schemas.Write()}, {"responses", paths.responses()}}}};
  if (with_token) document["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  return document.dump(1);
}

HttpFront OpenApiFront(std::string document) {
  const auto shared = std::make_shared<const std::string>(std::move(document));
  return [shared](const HttpRequest& head) -> std::optional<HttpPlan> {
    if (head.path != "/openapi.json") return std::nullopt;
    return HttpPlan{.methods = {"GET"}, .serve = [shared](const std::shared_ptr<HttpExchange>& exchange) {
                      exchange->Answer({.shared = {.bytes = *shared, .owner = shared}, .content_type = kJsonType});
                    }};
  };
}

}  // namespace longshort::server
