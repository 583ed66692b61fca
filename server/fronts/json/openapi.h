// The description of the HTTP port in OpenAPI 3.1. Each protocol gives its operations and schemas; those of protobuf
// messages come from the messages' descriptors, with the comments of their .proto files.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/call/rpc.h"
#include "server/fronts/json/json_message.h"
#include "server/fronts/json/json_schema.h"
#include "server/transports/http/http_exchange.h"

namespace longshort::server {

// Sets of file descriptors with comments, which the build writes into the program, by their files' names.
const std::map<std::string_view, std::string_view>& ProtoDescriptors();

// The comments of the contracts' .proto files, which the descriptors of compiled messages lack.
class ProtoComments final {
 public:
  ProtoComments();

  // The comment of a message, a field, an enum, one of its values or an RPC, by its full name; empty if it has none.
  std::string Of(const std::string& full_name) const;

 private:
  google::protobuf::DescriptorPool pool_;
};

// What a body holds: a message's JSON if `message` is set, otherwise a value of the type (see SchemaField).
struct HttpContent {
  std::string media_type = "application/json";
  std::string_view type = "any";
  const google::protobuf::Descriptor* message = nullptr;
  JsonForm form = JsonForm::kProtobuf;
  bool is_list = false;  // of such messages
};

// A parameter of a path if the path has it in braces, otherwise of the query, or a header.
struct HttpParameter {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  bool required = false;
  bool is_header = false;
};

// An answer other than 200 that is no error.
struct HttpAnswer {
  int status = 0;
  std::string_view help;
  HttpContent content;
};

// How a protocol writes its errors.
struct ErrorForm {
  std::string_view name;
  std::string_view help;
  HttpContent content;
};

// One method of one path.
struct HttpOperation {
  std::string method;  // in lower case
  std::string path;    // with parameters in braces: "/v2/models/{model}"
  std::string tag;     // the protocol
  std::string id;      // unique, the name of a generated client's function
  std::string summary;
  std::string rpc = {};  // the full name of the RPC whose comment is the description
  std::vector<HttpParameter> parameters = {};
  std::vector<HttpContent> requests = {};
  std::vector<HttpContent> answers = {};
  std::vector<HttpAnswer> others = {};
  const ErrorForm* errors = nullptr;
  bool is_public = false;  // needs no token
};

struct HttpDescription {
  std::vector<HttpOperation> operations = {};
  std::vector<NamedSchema> schemas = {};
};

// The operations of Connect for these RPCs.
HttpDescription ConnectDescription(const std::vector<Rpc>& rpcs);
// The port's own paths: metrics, probes, the page and the documents.
HttpDescription PortDescription();

// The document. `with_token`: whether calls need a bearer token.
std::string OpenApiDocument(absl::Span<const HttpDescription> descriptions, bool with_token);

// Serves it at /openapi.json.
HttpFront OpenApiFront(std::string document);

}  // namespace longshort::server
