// Messages as gRPC carries them. The server takes and gives bytes, so that a message that cannot be parsed is an
// INVALID_ARGUMENT that is counted and logged like every other wrong request (gRPC itself would answer INTERNAL,
// unseen).
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace longshort {

// Parses the message and frees its bytes. Errors: INVALID_ARGUMENT.
inline absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::ProtoBufferReader reader(&bytes);
  const bool parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok();
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", message.GetDescriptor()->full_name(),
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
