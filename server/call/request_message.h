// Parses the bytes of request messages. The server exchanges raw bytes with gRPC. So a message that cannot be parsed is
// INVALID_ARGUMENT, counted and logged like every other wrong request. gRPC itself would answer INTERNAL, unseen by the
// server. And gRPC 1.51 would decompress a message before it checks the limit.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"
#include "base/budget.h"
#include "server/call/message_size.h"

namespace longshort::server {

// Whether the message arrived compressed, with gzip or deflate.
bool IsCompressed(grpc::ByteBuffer& bytes);

// Parses the message. A compressed message is decompressed first, as far as `memory` grows with it. Adds to `memory`
// what the message takes; a small one adds nothing.
// Errors: RESOURCE_EXHAUSTED if it was compressed and has more than `max_bytes`, or, with a Refusal, if `memory` cannot
// grow; INVALID_ARGUMENT, also if it has more than kMaxElements, before they take memory.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message, int64_t max_bytes,
                          Budget::Share& memory);

}  // namespace longshort::server
