// Messages as gRPC carries them. The services take and give bytes, so that a message that cannot be parsed is an
// INVALID_ARGUMENT that is counted and logged like every other wrong request (gRPC itself would answer INTERNAL,
// unseen).
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace longshort {

template <typename Message>
absl::StatusOr<Message> ParseMessage(const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer shared = bytes;  // the parser wants to own one; the bytes themselves are not copied
  Message message;
  if (grpc::SerializationTraits<Message>::Deserialize(&shared, &message).ok()) return message;
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", Message::descriptor()->full_name(),
                                                 ": malformed, or a string field is not UTF-8"));
}

template <typename Message>
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
  if (!status.ok()) return absl::InternalError("the answer cannot be serialised: " + status.error_message());
  return bytes;
}

}  // namespace longshort
