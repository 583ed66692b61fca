// How a protocol carries the messages of one call in an HTTP exchange: Connect, the Open Inference Protocol's REST
// form, OpenAI's. One object for each call.
//
// Thread: one at a time. Errors go to the client: by WriteError, or by WriteEnd if a stream has begun.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

// What JSON may have beside a message's texts and bytes.
inline constexpr int64_t kJsonBesideBytes = 64 << 10;
// The largest body of JSON that may hold a message of this size: it codes bytes by base64, four characters for three.
inline size_t MaxJsonBodyBytes(int64_t max_message_bytes) {
  return static_cast<size_t>(max_message_bytes / 3 * 4 + kJsonBesideBytes);
}
// The longest message, unpacked, of a body that was packed.
inline int64_t MaxUnpackedBytes(int64_t max_message_bytes) { return max_message_bytes + kJsonBesideBytes; }

// The bytes of a message as they arrived.
struct PackedMessage {
  std::string bytes;
  std::string coding;  // content coding; empty: none
};

class HttpCodec {
 public:
  virtual ~HttpCodec() = default;

  // The content coding of the call's messages.
  virtual std::string CodingOf(const HttpRequest& request) const {
    return request.Find("content-encoding").value_or("");
  }
  // A call with one message: moves its bytes out of the request.
  virtual absl::StatusOr<PackedMessage> TakeOnly(HttpRequest& request) {
    return PackedMessage{std::move(request.body), CodingOf(request)};
  }
  // Streams of requests: removes the next message's bytes from `received`; nullopt if they have not all arrived.
  virtual absl::StatusOr<std::optional<PackedMessage>> TakeNext(std::string& /*received*/) {
    return absl::UnimplementedError("this path takes one message");
  }
  // Reads the message from the request's body, which is the message's bytes, unpacked, and from which it may move. The
  // meter counts what the message takes, and what reading it takes beside.
  virtual absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message, MemoryMeter& meter) = 0;

  // The answer of a call with one answer. Not for answers that write themselves (CallAnswer).
  virtual absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& /*answer*/) {
    return absl::InternalError("the answers of this path are no messages");
  }
  virtual HttpResponse WriteError(const absl::Status& status) = 0;
  // The message, its JSON and the compressed JSON of an answer together take so many times the message's bytes.
  virtual size_t copies() const { return 5; }

  // Streams of answers. A call of a row that streams may also have one answer, sent with its status. An error before
  // the first message is sent by WriteError, unless `errors_in_stream`.
  virtual bool errors_in_stream() const { return false; }
  virtual std::string stream_content_type() const { return ""; }
  // Further fields of a stream's head.
  virtual HttpFields stream_fields() const { return {}; }
  // Not for answers that write themselves.
  virtual absl::StatusOr<std::string> WriteMessage(const google::protobuf::Message& /*answer*/) {
    return absl::UnimplementedError("this path has one answer");
  }
  // The stream's last bytes.
  virtual std::string WriteEnd(const absl::Status& /*status*/) { return ""; }
};

}  // namespace longshort::server
