// The HTTP port: /metrics for Prometheus, /livez and /readyz for probes, the page at /, and the paths of the protocols
// that fronts serve. The 404 of everything else says what is there and where gRPC is.
//
// It has its own thread, so probes get an answer even if gRPC and the models are busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/access/tls_material.h"
#include "server/options/server_options.h"
#include "server/transports/http/http_exchange.h"
#include "server/transports/http/http_server.h"

namespace longshort::server {

class HttpEndpoints {
 public:
  // Whether a client with this `Authorization` value (nullopt: none) may read the metrics. Errors: UNAUTHENTICATED,
  // PERMISSION_DENIED.
  using MayReadMetrics = std::function<absl::Status(std::optional<std::string> authorization)>;

  // The client whose calls a request counts among (HttpPlan::client). Sets HttpRequest::grant if it finds one.
  using ClientOf = std::function<std::string(HttpRequest& head)>;

  struct Options {
    ListenAddress address;
    // Of the file of a Unix socket.
    int64_t socket_mode = kDefaultSocketMode;
    // The body of /metrics. The HTTP thread calls it.
    std::function<std::string()> metrics;
    // Called by the HTTP thread. Empty: every client may read them.
    MayReadMetrics may_read_metrics = {};
    // Called by the HTTP thread. Empty: calls are not counted by client.
    ClientOf client_of = {};
    // How many versions of models could not be loaded, for the text of /readyz.
    std::function<int64_t()> models_not_loaded = [] { return 0; };
    // The server's certificate for HTTPS, which must outlive the endpoints; nullptr: plain HTTP. If it has authorities
    // of clients, the fronts serve only clients with a certificate.
    const TlsWatch* tls = nullptr;
    // The address of gRPC, for people.
    std::string grpc = {};
    // The origin whose pages may call the server from a browser; "*": every origin, "": none.
    std::string cors_origin = {};
    // Whether a request's Host must be localhost, a loopback address, or one of `hosts`. Otherwise a page of any site
    // could read what is served to this machine's users: by DNS, its own name may become a loopback address.
    bool checks_host = false;
    std::vector<std::string> hosts = {};
    // Whether fronts and the page are served.
    bool inference = true;
    // Whether / is the page.
    bool page = true;
    HttpLimits limits = {};
  };

  // Errors: as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<HttpEndpoints>> Start(Options options);

  // Serves these fronts, too, unless options forbid it; until then a path that may be theirs is answered with 503.
  // Thread-safe.
  void Serve(std::vector<HttpFront> fronts);
  // Closes all connections. When it returns no front and no call that came by one is in use.
  void Close() { server_->Close(); }

  // The address that the server listens on, with the port that the system chose.
  ListenAddress address() const;

  // Sets the answer of /readyz; 503 at first. Thread-safe.
  void SetReady(bool ready) { ready_ = ready; }

 private:
  explicit HttpEndpoints(Options options) : options_(std::move(options)) {}

  HttpPlan Route(HttpRequest& head) const;
  // The plan for the path, whatever the method.
  HttpPlan PlanOf(const HttpRequest& head) const;
  // The answer to a GET of one of the port's own paths; nullptr for other paths.
  std::function<HttpResponse(const HttpRequest&)> OwnAnswer(const HttpRequest& head) const;
  // Errors: those of MayReadMetrics.
  absl::Status CheckMetricsAccess(const HttpRequest& head) const;
  // Answers with metrics that were rendered after `asked`. They are rendered at most ten times a second, so the answer
  // may wait.
  void ServeMetrics(const std::shared_ptr<HttpExchange>& exchange, absl::Time asked) const;
  bool Serves(const std::string& host) const;
  bool AllowsOrigin(const std::optional<std::string>& origin) const;

  const Options options_;
  std::string what_;           // what the port has, for people
  bool asks_clients_ = false;  // for a certificate
  std::atomic<bool> ready_ = false;
  // The metrics as they were rendered last. Only the HTTP thread uses them.
  mutable std::shared_ptr<const std::string> metrics_;
  mutable absl::Time metrics_time_ = absl::InfinitePast();
  mutable Mutex mutex_;
  std::shared_ptr<const std::vector<HttpFront>> fronts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;  // last: its thread uses the other members
};

}  // namespace longshort::server
