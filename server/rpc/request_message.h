// Parses the bytes of request messages. The server exchanges raw bytes with gRPC. So a message that cannot be parsed is
// INVALID_ARGUMENT, counted and logged like every other wrong request. gRPC itself would answer INTERNAL, unseen by the
// server. And gRPC 1.51 would decompress a message before it checks the limit.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

namespace longshort::server {

// Whether the message arrived compressed, with gzip or deflate.
bool IsCompressed(grpc::ByteBuffer& bytes);

// Parses the message and frees its bytes. A compressed message is decompressed piece by piece as it is parsed.
// Errors: RESOURCE_EXHAUSTED if it was compressed and has more than `max_bytes`; INVALID_ARGUMENT.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message, int64_t max_bytes);

}  // namespace longshort::server
