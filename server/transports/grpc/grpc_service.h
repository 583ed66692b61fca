// A gRPC service that serves a table of RPCs. Each call is a Call, whatever its RPC.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "base/budget.h"
#include "server/call/call_environment.h"
#include "server/call/call_record.h"
#include "server/call/message_size.h"
#include "server/call/rpc.h"

namespace longshort::server {

// The number of gRPC calls that services have begun, by connection. gRPC has more in memory: those whose first message
// has not arrived. Connections that share a counter count for each other.
//
// Thread-safe.
class BegunCalls final {
 public:
  using Counter = std::atomic<int32_t>;

  // The counter of the connection with this peer.
  Counter& Of(std::string_view peer) { return counters_[absl::Hash<std::string_view>()(peer) % counters_.size()]; }

  int64_t total() const {
    int64_t total = 0;
    for (const Counter& counter : counters_) total += counter;
    return total;
  }

 private:
  std::array<Counter, 4096> counters_ = {};
};

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
