// An HTTP/1.1 and HTTPS server, on Boost.Beast and Boost.Asio.
//
// Connections, bytes of requests, and times are limited, so many slow clients do not delay others. When all connections
// are in use, a new one closes one of an address that has many: the one whose phase (request, answer or idle) began
// first. A request that is being served is not cut off. Calls (HttpPlan::is_call) cannot use all connections, so there
// is room for probes and metrics.
//
// Thread: one I/O thread serves all connections and calls the router. Another one does the arithmetic of TLS
// handshakes, the clients' addresses in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "server/options/listening_sockets.h"
#include "server/transports/http/http_exchange.h"

// OpenSSL's.
struct ssl_ctx_st;

namespace longshort::server {

struct HttpLimits {
  size_t connections = 128;
  // Calls that are being served, without those whose body is being read.
  size_t calls() const { return connections - connections / 8; }
  // With what a connection holds besides, 16 KiB before a token was seen.
  size_t head_bytes = 10'000;
  // From the start of a connection (TLS handshake included) or of a later request to the end of the request's head.
  absl::Duration request = absl::Seconds(5);
  // For each 64 KiB of a request's body, unless it is read in parts, and of an answer.
  absl::Duration body = absl::Seconds(10);
  absl::Duration answer = absl::Seconds(10);
  // Between an answer and the next request; clients read it as whole seconds. Longer than the default interval of
  // scrapers.
  absl::Duration idle = absl::Seconds(75);
  // Called by the I/O thread with the number of open connections, whenever it changes. Empty: not called.
  std::function<void(size_t connections)> on_connections = nullptr;
  // Called by the I/O thread when an exception, which is a defect, has ended a connection. Empty: not called.
  std::function<void(const std::string& what)> on_failure = nullptr;
};

class HttpServer final {
 public:
  // Starts to serve. `tls`: null for plain HTTP; the server holds a reference, and the process must ignore SIGPIPE.
  // `socket_mode`: of the file of a Unix socket. Errors: UNAVAILABLE if the address cannot be bound; RESOURCE_EXHAUSTED
  // if the system has no thread.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const NamedAddress& name, HttpRouter router,
                                                           ssl_ctx_st* tls = nullptr, const HttpLimits& limits = {},
                                                           int64_t socket_mode = kDefaultSocketMode);
  // As Close.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // 0 for a Unix socket.
  int port() const { return port_; }
  // Closes all connections, and waits until no exchange is in use. From then on each new connection is closed.
  void Close();

 private:
  class Loop;

  HttpServer(int port, std::unique_ptr<Loop> loop);

  const int port_;
  const std::unique_ptr<Loop> loop_;
  Thread thread_;  // last: it runs the loop
};

}  // namespace longshort::server
