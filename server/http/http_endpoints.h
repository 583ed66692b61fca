// The HTTP port: /metrics for Prometheus, /livez and /readyz for probes. / says what is there and where gRPC is; so
// does the 404 of everything else.
//
// It has its own thread, so probes get an answer even if gRPC and the models are busy.
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
  // Whether a client with this `Authorization` value (nullopt: none) may read the metrics. Errors: UNAUTHENTICATED,
  // PERMISSION_DENIED.
  using MayReadMetrics = std::function<absl::Status(std::optional<std::string> authorization)>;

  // `metrics` returns the body of /metrics. The HTTP thread calls it and `may_read_metrics`; without
  // `may_read_metrics` every client may read them. `tls`: the server's certificate for HTTPS, which must outlive the
  // endpoints; nullptr: plain HTTP. Clients need no certificate. `grpc`: the address of
  // gRPC, for people. Errors: as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpEndpoints>> Start(const ListenAddress& address,
                                                              std::function<std::string()> metrics,
                                                              MayReadMetrics may_read_metrics = {},
                                                              const TlsWatch* tls = nullptr,
                                                              const std::string& grpc = "");

  // The port that the server listens on.
  int port() const { return server_->port(); }

  // Sets the answer of /readyz; 503 at first. Thread-safe.
  void SetReady(bool ready) { ready_ = ready; }

 private:
  HttpEndpoints() = default;

  std::atomic<bool> ready_ = false;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace longshort::server
