// The running server: HTTP, models with their engines, and gRPC. They start in this order and stop in the reverse
// order.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/model_registry.h"
#include "server/access/access_control.h"
#include "server/call/call_environment.h"
#include "server/call/call_gate.h"
#include "server/call/delivery_threads.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/openai/openai.h"
#include "server/lifecycle/grpc_endpoint.h"
#include "server/lifecycle/tls_credentials.h"
#include "server/model_control/load_models.h"
#include "server/model_control/model_manager.h"
#include "server/monitoring/load_report.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/trace_exporter.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"
#include "server/transports/http/http_endpoints.h"

namespace longshort::server {

class Server {
 public:
  // Opens HTTP (not ready yet), binds gRPC's port, loads all models, opens gRPC, writes --port-file, and becomes
  // ready. `log` must outlive the server. Errors: an address that cannot be bound, or the first model that cannot be
  // loaded, with its name.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, const MachineLimits& machine,
                                                       const GuardedLoader& loader, Logger& log);

  ~Server();

  // Sets readiness and health to not serving, and otherwise keeps serving for --drain-delay. Then accepts no
  // connections, and asks clients to begin no further calls (GOAWAY). Serves calls that arrive meanwhile, until no call
  // is left or --drain-timeout has almost passed. Then the engines end running calls with UNAVAILABLE. Returns when all
  // calls have ended, even if clients keep connections open.
  void Drain();

 private:
  Server(const ServerOptions& options, Logger& log);

  const ServerOptions options_;
  Logger& log_;
  ServerMetrics metrics_;
  CallGate gate_;
  std::unique_ptr<CallMemory> memory_;
  // In the order of their dependencies; destroyed last to first.
  std::unique_ptr<ServerTls> tls_;  // null without TLS
  std::unique_ptr<AccessControl> access_;
  std::unique_ptr<HttpEndpoints> http_;
  std::unique_ptr<core::ModelRegistry> models_;
  std::unique_ptr<ModelManager> manager_;
  std::unique_ptr<LoadReport> load_report_;
  std::unique_ptr<Tracing> tracing_;  // null without traces
  std::unique_ptr<CallEnvironment> environment_;
  std::unique_ptr<DeliveryThreads> deliveries_;
  const std::vector<Rpc> http_rpcs_ = LongshortV1Rpcs();
  const std::vector<Rpc> open_inference_rpcs_ = OpenInferenceRpcs();
  std::unique_ptr<GrpcEndpoint> grpc_;
};

}  // namespace longshort::server
