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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace longshort::server {

class HttpCodec {
 public:
  virtual ~HttpCodec() = default;

  // Reads the message of a call with one message. It may move from the request's body.
  virtual absl::Status ReadRequest(HttpRequest& request, google::protobuf::Message& message) = 0;
  // Streams of requests: removes the next message's bytes from `received`; nullopt if they have not all arrived.
  virtual absl::StatusOr<std::optional<std::string>> TakeMessage(std::string& /*received*/) {
    return absl::UnimplementedError("this path takes one message");
  }
  virtual absl::Status ReadMessage(const std::string& /*bytes*/, google::protobuf::Message& /*message*/) {
    return absl::UnimplementedError("this path takes one message");
  }

  // The answer of a call with one answer.
  virtual absl::StatusOr<HttpResponse> WriteAnswer(const google::protobuf::Message& answer) = 0;
  virtual HttpResponse WriteError(const absl::Status& status) = 0;

  // Streams of answers. A call of a row that streams may also have one answer, sent with its status. An error before
  // the first message is sent by WriteError, unless `errors_in_stream`.
  virtual bool errors_in_stream() const { return false; }
  virtual std::string stream_content_type() const { return ""; }
  virtual absl::StatusOr<std::string> WriteMessage(const google::protobuf::Message& /*answer*/) {
    return absl::UnimplementedError("this path has one answer");
  }
  // The stream's last bytes.
  virtual std::string WriteEnd(const absl::Status& /*status*/) { return ""; }
};

// The largest body of JSON that may hold a message of this size: it codes bytes by base64, four characters for three.
inline size_t MaxJsonBodyBytes(int64_t max_message_bytes) {
  constexpr int64_t kBeside = 64 << 10;
  return static_cast<size_t>(max_message_bytes / 3 * 4 + kBeside);
}

// When the client stops waiting, by the field Connect-Timeout-Ms, whatever the protocol. Errors: INVALID_ARGUMENT.
absl::StatusOr<absl::Time> ReadDeadline(const HttpRequest& request);

}  // namespace longshort::server
