// An HTTP/1.1 and HTTPS server for short GET requests, on Boost.Beast and Boost.Asio.
//
// Connections, bytes of a request's head, and times are limited, so many slow clients do not delay others. When all
// connections are in use, a new one closes the one whose phase (request, answer or idle) began first.
//
// Thread: one thread serves all connections and calls the handlers, which must not block.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "server/options/listening_sockets.h"

// OpenSSL's.
struct ssl_ctx_st;

namespace longshort::server {

struct HttpRequest {
  std::string method;
  std::string path;  // without a query
  // The values of all `Authorization` fields, joined with commas: two values are not a valid token.
  std::optional<std::string> authorization;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  // Further header fields: name and value.
  std::vector<std::pair<std::string, std::string>> fields = {};
};

struct HttpLimits {
  size_t connections = 128;
  size_t head_bytes = 8192;
  // From the start of a connection (TLS handshake included) or of a later request to the end of the request's head.
  absl::Duration request = absl::Seconds(5);
  // For a client to read its answer.
  absl::Duration answer = absl::Seconds(10);
  // Between an answer and the next request. Longer than the default interval of scrapers.
  absl::Duration idle = absl::Seconds(75);
};

class HttpServer final {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest& request)>;

  // Starts to answer GET and HEAD of these paths, and everything else with 404 and `not_found`. `tls`: null for plain
  // HTTP; the server holds a reference. Errors: UNAVAILABLE if the address cannot be bound; RESOURCE_EXHAUSTED if the
  // system has no thread.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const NamedAddress& name,
                                                           std::map<std::string, Handler> handlers,
                                                           ssl_ctx_st* tls = nullptr, const HttpLimits& limits = {},
                                                           std::string not_found = "Not Found\n");
  // Closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  class Loop;

  HttpServer(int port, std::unique_ptr<Loop> loop);

  const int port_;
  const std::unique_ptr<Loop> loop_;
  Thread thread_;  // last: it runs the loop
};

}  // namespace longshort::server
