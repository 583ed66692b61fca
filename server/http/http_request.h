// As much of HTTP/1.1 as GETs without a body need: the head of a request (RFC 9112).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace longshort {

struct HttpRequest {
  std::string method;
  std::string path;  // without a query
  // The values of all `Authorization` fields, with commas between them: two are no token.
  std::optional<std::string> authorization;
  // Whether the client wants to ask more on this connection.
  bool keep_alive = true;
  // Whether a body follows, which nobody reads.
  bool has_body = false;
};

struct HttpRequestHead {
  HttpRequest request;
  size_t bytes = 0;  // that it takes
};

// The first head in `bytes`; nothing if it has not come whole. `Range` and whatever else asks for another form of the
// answer is not looked at. Errors: INVALID_ARGUMENT for what is no request.
absl::StatusOr<std::optional<HttpRequestHead>> ReadHttpRequest(std::string_view bytes);

}  // namespace longshort
