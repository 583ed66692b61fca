// Parses the bytes of request messages. The server exchanges raw bytes with gRPC. So a message that cannot be parsed is
// INVALID_ARGUMENT, counted and logged like every other wrong request. gRPC itself would answer INTERNAL, unseen by the
// server. And gRPC 1.51 would decompress a message before it checks the limit.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/budget.h"
#include "server/rpc/message_size.h"

namespace longshort::server {

// Whether the message arrived compressed, with gzip or deflate.
bool IsCompressed(grpc::ByteBuffer& bytes);

// Parses the message and frees its bytes. A compressed message is decompressed piece by piece as it is parsed. Returns
// the share of `budget` that the message needs; a small message needs none.
// Errors: RESOURCE_EXHAUSTED if it was compressed and has more than `max_bytes`; the same, with a Refusal, if the
// budget has no room; INVALID_ARGUMENT, also if it has more than kMaxElements, before they take memory.
absl::StatusOr<Budget::Share> ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message,
                                           int64_t max_bytes, const std::shared_ptr<Budget>& budget);

}  // namespace longshort::server
