// The gRPC port: the services of the contract, standard health, and reflection.
//
// Health reports "" (the server), "longshort.v1.Inference", "longshort.v1.Models", "longshort.v1.Sessions", "<model>"
// and "<model>/<version>".
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/call/call_environment.h"
#include "server/lifecycle/tls_credentials.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"
#include "server/transports/grpc/grpc_service.h"
#include "server/transports/grpc/standard_services.h"
#include "server/transports/grpc_1_51/connection_guard.h"
#include "server/transports/grpc_1_51/connection_listener.h"

namespace longshort::server {

class GrpcEndpoint {
 public:
  // Starts to serve the connections of `listener`, over TLS if there is `tls`. `environment` and `tls` must outlive
  // the endpoint. Errors: those of ConnectionListener::Start; INTERNAL if gRPC fails to start.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Start(const ServerOptions& options, const MachineLimits& machine,
                                                             const CallEnvironment& environment,
                                                             std::unique_ptr<ConnectionListener> listener,
                                                             const ServerTls* tls = nullptr);
  // Sends GOAWAY, and half a second later ends what clients keep open (health watches, for example). REQUIRES: the
  // environment's gate is closed, so that it refuses further calls.
  ~GrpcEndpoint();

  // The address that the endpoint listens on, or listened on.
  const ListenAddress& address() const { return address_; }

  // Updates the health of this model and version. Thread-safe.
  void AnnounceModel(const std::string& model, int64_t version);
  // Sets every name to NOT_SERVING permanently, and notifies watchers.
  void StopServing();
  // Stops accepting connections, and asks clients to begin no further calls on theirs (GOAWAY). Calls already begun
  // are served. Returns when all clients have left, when no call except idle streams has been open for a second, or at
  // `deadline`. Call it once.
  void DrainConnections(absl::Time deadline);

 private:
  GrpcEndpoint(const CallEnvironment& environment, const AbuseLimits& limits,
               std::unique_ptr<ConnectionListener> listener);

  ConnectionGuard::Handlers GuardHandlers(int64_t bytes_of_connection);
  absl::Status StartListening();
  void AnnounceServing();

  const CallEnvironment& environment_;
  const ListenAddress address_;
  Health health_;
  Reflection reflection_;
  GrpcService service_;
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  ConnectionGuard guard_;  // destroyed first: it calls gRPC
};

}  // namespace longshort::server
