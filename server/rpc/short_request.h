// Requests of the standard services name one thing each. Streams keep what they were asked, and anybody may ask: so
// requests are short.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/message_bytes.h"

namespace longshort {

// Far more than the longest name that there is.
inline constexpr size_t kMostRequestBytes = 4096;

// Errors: those of TakeMessage; INVALID_ARGUMENT for a longer request.
template <typename Message>
absl::StatusOr<Message> TakeShortRequest(const grpc::ByteBuffer& bytes) {
  if (!bytes.Valid() || bytes.Length() <= kMostRequestBytes) return TakeMessage<Message>(bytes);
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", bytes.Length(), " bytes; it must have at most ", kMostRequestBytes));
}

}  // namespace longshort
