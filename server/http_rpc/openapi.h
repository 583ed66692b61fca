// The description of the HTTP port in OpenAPI 3.1, made from the tables of RPCs and the descriptors of their messages.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "server/http/http_front.h"
#include "server/rpc/rpc.h"

namespace longshort::server {

// What a body holds.
struct HttpContent {
  std::string type = "application/json";
  // The message whose JSON it is; otherwise `schema`, a JSON schema as text.
  const google::protobuf::Descriptor* message = nullptr;
  std::string schema = "{}";
};

// One method of one path.
struct HttpOperation {
  std::string method;  // in lower case
  std::string path;    // with parameters in braces: "/v2/models/{model}"
  std::string tag;     // the protocol
  std::string id;      // unique, the name of a generated client's function
  std::string summary;
  std::vector<std::string> query = {};  // names of parameters, all optional
  std::vector<HttpContent> requests = {};
  std::vector<HttpContent> answers = {};
};

// The operations of Connect for these RPCs.
std::vector<HttpOperation> ConnectOperations(const std::vector<Rpc>& rpcs);

// The document. `with_token`: whether calls need a bearer token.
std::string OpenApiDocument(const std::vector<HttpOperation>& operations, bool with_token);

// Serves it at /openapi.json.
HttpFront OpenApiFront(std::string document);

}  // namespace longshort::server
