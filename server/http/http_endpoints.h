// The HTTP port: /metrics for Prometheus, /livez and /readyz for probes; everything else is 404.
//
// It has a thread of its own, so that probes are answered however busy gRPC and the models are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/tls_watch.h"
#include "server/http/http_server.h"
#include "server/options/server_options.h"

namespace longshort::server {

class HttpEndpoints {
 public:
  // Whether a client that sends this as `Authorization` (nullopt: nothing) may read the metrics. Errors:
  // UNAUTHENTICATED, PERMISSION_DENIED.
  using MayReadMetrics = std::function<absl::Status(std::optional<std::string> authorization)>;

  // `metrics` makes the body of /metrics. The HTTP thread calls it and `may_read_metrics`; without the latter everybody
  // may read them. `tls`: the certificate of what is then HTTPS; it must outlive the endpoints; nullptr: HTTP. Clients
  // are asked for no certificate. Errors: as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpEndpoints>> Start(const ListenAddress& address,
                                                              std::function<std::string()> metrics,
                                                              MayReadMetrics may_read_metrics = {},
                                                              const TlsWatch* tls = nullptr);

  // The port that is listened on.
  int port() const { return server_->port(); }

  // The answer of /readyz: 503 at first. Thread-safe.
  void SetReady(bool ready) { ready_ = ready; }

 private:
  HttpEndpoints() = default;

  std::atomic<bool> ready_ = false;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace longshort::server
