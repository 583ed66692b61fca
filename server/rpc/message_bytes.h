// Messages as gRPC carries them. The services take and give bytes, so that a message that cannot be parsed is an
// INVALID_ARGUMENT that is counted and logged like every other wrong request (gRPC itself would answer INTERNAL,
// unseen).
//
// gRPC starts a call whose message did not come, too, with bytes that are not Valid(): the client cancelled, or its
// deadline passed, or the message was over the limit, or there was none. The context need not know yet that the call is
// cancelled, so the bytes are what tells.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace longshort {

// Parses the message, and lets go of its bytes: gRPC shows them as constant, and would keep them as long as the call
// lasts. They are its own, or an object of ours, so they can be taken.
// Errors: CANCELLED if no message came (CallRecord::Finish knows whether that was the deadline), INVALID_ARGUMENT.
template <typename Message>
absl::StatusOr<Message> TakeMessage(const grpc::ByteBuffer& bytes) {
  if (!bytes.Valid()) return absl::CancelledError("the call ended before its message came");
  grpc::ByteBuffer taken;
  taken.Swap(&const_cast<grpc::ByteBuffer&>(bytes));
  Message message;
  if (grpc::SerializationTraits<Message>::Deserialize(&taken, &message).ok()) return message;
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
