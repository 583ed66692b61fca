// The HTTP side: /metrics for Prometheus, /livez and /readyz for probes; everything else is 404.
//
// Own threads, so that probes are answered however busy gRPC and the models are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/options/server_options.h"
#include "server/tls/tls_watch.h"

namespace httplib {
class Server;
}

namespace longshort {

class HttpEndpoints {
 public:
  // Whether who sends this as `Authorization` (nullopt: nothing) may read the metrics. Errors: UNAUTHENTICATED,
  // PERMISSION_DENIED.
  using MayReadMetrics = std::function<absl::Status(std::optional<std::string> authorization)>;

  // `metrics` makes the body of /metrics; called from several threads, as `may_read_metrics` is. Without the latter
  // everybody may read them.
  // `tls`: the certificate of what is then HTTPS; it must outlive the endpoints; nullptr: HTTP.
  // Errors: UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpEndpoints>> Start(const ListenAddress& address,
                                                              std::function<std::string()> metrics,
                                                              MayReadMetrics may_read_metrics = {},
                                                              const TlsWatch* tls = nullptr);
  ~HttpEndpoints();

  // The port that is listened on.
  int port() const { return port_; }

  // What /readyz says: 503 at first. Thread-safe.
  void SetReady(bool ready) { ready_ = ready; }

 private:
  HttpEndpoints(std::function<std::string()> metrics, MayReadMetrics may_read_metrics, const TlsWatch* tls);

  std::atomic<bool> ready_ = false;
  int port_ = 0;
  std::unique_ptr<httplib::Server> server_;
  absl::Notification ended_;  // the thread listens no longer, and nobody is served
  std::thread thread_;
};

}  // namespace longshort
