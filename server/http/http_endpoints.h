// The HTTP side: /metrics for Prometheus, /livez and /readyz for probes; everything else is 404.
//
// A thread of its own, so that probes are answered however busy gRPC and the models are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/http/http_server.h"
#include "server/options/server_options.h"

namespace longshort {

class HttpEndpoints {
 public:
  // `metrics` makes the body of /metrics, by the thread of HTTP.
  // Errors: UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpEndpoints>> Start(const ListenAddress& address,
                                                              std::function<std::string()> metrics);

  // The port that is listened on.
  int port() const { return server_->port(); }

  // What /readyz says: 503 at first. Thread-safe.
  void SetReady(bool ready) { ready_ = ready; }

 private:
  HttpEndpoints() = default;

  std::atomic<bool> ready_ = false;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace longshort
