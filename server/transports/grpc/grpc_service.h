// A gRPC service that serves a table of RPCs. Each call is a Call, whatever its RPC.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <string>
#include <vector>

#include "server/call/call_environment.h"
#include "server/call/rpc.h"
#include "server/transports/grpc/begun_calls.h"

namespace longshort::server {

class GrpcService final : public grpc::Service {
 public:
  // `environment` must outlive the service.
  GrpcService(const CallEnvironment& environment, std::vector<Rpc> rpcs);

  const std::vector<Rpc>& rpcs() const { return rpcs_; }
  BegunCalls& begun_calls() { return begun_; }

 private:
  const std::vector<Rpc> rpcs_;
  BegunCalls begun_;
  std::vector<std::string> paths_;  // gRPC refers to them
};

}  // namespace longshort::server
