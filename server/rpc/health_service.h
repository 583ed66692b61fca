// grpc.health.v1: how the server and its models are. Answered while the server stops, too, which waits for none of it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/admission/call_environment.h"
#include "server/rpc/health_board.h"
#include "server/rpc/held_streams.h"

namespace longshort {

using RawHealthService =
    grpc::health::v1::Health::WithRawCallbackMethod_Check<grpc::health::v1::Health::WithRawCallbackMethod_List<
        grpc::health::v1::Health::WithRawCallbackMethod_Watch<grpc::health::v1::Health::Service>>>;

class HealthService final : public RawHealthService {
 public:
  // Watches are silent by their nature: so many may be, of each connection and in all.
  static constexpr int64_t kMostWatchesOfConnection = 100, kMostWatches = 4096;

  // `environment` must outlive the service.
  explicit HealthService(const CallEnvironment& environment) : environment_(environment) {}

  HealthBoard& board() { return board_; }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

 private:
  const CallEnvironment& environment_;
  HealthBoard board_;
  HeldStreams watches_{kMostWatchesOfConnection, kMostWatches};
};

}  // namespace longshort
