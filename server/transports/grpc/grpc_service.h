// A gRPC service that serves a table of RPCs. Each call is a Call, whatever its RPC.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "base/budget.h"
#include "server/call/call_environment.h"
#include "server/call/call_record.h"
#include "server/call/message_size.h"
#include "server/call/rpc.h"

namespace longshort::server {

// Counts the gRPC calls of each connection. Connections that share counters count for each other.
//
// Thread-safe.
class ConnectionCounts final {
 public:
  struct Counts {
    // Open calls that services have begun. gRPC has more in memory: those whose first message has not arrived.
    std::atomic<int32_t> begun = 0;
    // Calls that were refused, since the last look.
    std::atomic<int32_t> refused = 0;
  };

  // The counts of the connection with this peer.
  Counts& Of(std::string_view peer) { return counts_[absl::Hash<std::string_view>()(peer) % counts_.size()]; }

  int64_t begun() const {
    int64_t total = 0;
    for (const Counts& counts : counts_) total += counts.begun;
    return total;
  }
  void NoteRefused(Counts& counts) {
    ++counts.refused;
    ++refused_;
  }
  int64_t TakeRefused(std::string_view peer) { return Of(peer).refused.exchange(0); }
  // All that were refused since the start.
  int64_t refused() const { return refused_; }

 private:
  std::array<Counts, 4096> counts_ = {};
  std::atomic<int64_t> refused_ = 0;
};

class GrpcService final : public grpc::Service, public grpc::CallbackGenericService {
 public:
  // `environment` must outlive the service.
  GrpcService(const CallEnvironment& environment, std::vector<Rpc> rpcs);

  void AddTo(grpc::ServerBuilder& builder);

  const std::vector<Rpc>& rpcs() const { return rpcs_; }
  ConnectionCounts& counts() { return counts_; }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

  const CallEnvironment& environment_;
  const std::vector<Rpc> rpcs_;
  ConnectionCounts counts_;
  std::unordered_map<std::string, const Rpc*> by_path_;  // gRPC refers to the paths
};

// Parses the bytes of request messages. The server exchanges raw bytes with gRPC. So a message that cannot be parsed is
// INVALID_ARGUMENT, counted and logged like every other wrong request. gRPC itself would answer INTERNAL, unseen by the
// server. And gRPC 1.51 would decompress a message before it checks the limit.

// Whether the message arrived compressed, with gzip or deflate.
bool IsCompressed(grpc::ByteBuffer& bytes);

// Parses the message. A compressed message is decompressed first, as far as `memory` grows with it. Adds to `memory`
// what the message takes; a small one adds nothing.
// Errors: RESOURCE_EXHAUSTED if it was compressed and has more than `max_bytes`, or, with a Refusal, if `memory` cannot
// grow; INVALID_ARGUMENT, also if it has more than kMaxElements, before they take memory.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message, int64_t max_bytes,
                          Budget::Share& memory);

// The metadata of a gRPC call: reads the caller's metadata, and writes the server's trailing metadata.

struct CallMetadataOptions {
  // Whether to read the client's certificate, and the authority by which the client addressed the server.
  bool certificates = false;
  bool authority = false;
};

// Reads the origin and the deadline of a gRPC call. Without `authorization` it also reads the client's certificate, if
// the options say so.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options);

// Puts the call's id, the server's load and, for a refusal, the retry delay into the trailing metadata. `status` is the
// result of CallRecord::Finish. Returns the status for gRPC.
grpc::Status SetTrailingMetadata(const absl::Status& status, const CallRecord& record,
                                 grpc::CallbackServerContext& context);

}  // namespace longshort::server
