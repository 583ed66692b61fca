// The gRPC side: the services of the contract, standard health, and reflection, on one port.
//
// Health knows "" (the server), "longshort.v1.Inference", "longshort.v1.Models", "longshort.v1.Sessions", "<model>" and
// "<model>/<version>".
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/call_environment.h"
#include "server/grpc_1_51/connection_guard.h"
#include "server/grpc_1_51/connection_listener.h"
#include "server/lifecycle/tls_credentials.h"
#include "server/options/machine_limits.h"
#include "server/options/server_options.h"
#include "server/rpc/grpc_service.h"
#include "server/rpc/health.h"
#include "server/rpc/reflection.h"

namespace longshort::server {

class GrpcEndpoint {
 public:
  // Serves what `listener` accepts from now on, by TLS if there is `tls`. `environment` and `tls` must outlive the
  // endpoint.
  // Errors: those of ConnectionListener::Start; INTERNAL if gRPC fails to start.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Start(const ServerOptions& options, const MachineLimits& machine,
                                                             const CallEnvironment& environment,
                                                             std::unique_ptr<ConnectionListener> listener,
                                                             const ServerTls* tls = nullptr);
  // Tells clients to leave, and ends what they keep open half a second later (health watches, for instance). REQUIRES:
  // the environment's gate is closed, so that what they still send is refused.
  ~GrpcEndpoint();

  // The port that is, or was, listened on.
  int port() const { return port_; }

  // Health tells from now on whether this model, and this version of it, serve. Thread-safe.
  void AnnounceModel(const std::string& model, int64_t version);
  // Every name becomes NOT_SERVING, for good; watchers are told.
  void StopServing();
  // Accepts no more connections, and asks the clients of those that there are to begin no more calls on them (GOAWAY).
  // Calls that they began are let in, and go on. Returns when all clients have left, or no call but idle streams has
  // been open for a second; at `deadline` at the latest. Once.
  void LetClientsLeave(absl::Time deadline);

 private:
  GrpcEndpoint(const CallEnvironment& environment, const AbuseLimits& limits,
               std::unique_ptr<ConnectionListener> listener);

  ConnectionGuard::Handlers GuardHandlers();
  absl::Status StartListening();
  void AnnounceServing();

  const CallEnvironment& environment_;
  const int port_;
  Health health_;
  Reflection reflection_;
  GrpcService service_;
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  ConnectionGuard guard_;  // ends first: it asks gRPC
};

}  // namespace longshort::server
