// A Call that came by HTTP: the same limits, order, metrics, log lines and traces as by gRPC. Its codec says how a
// protocol carries the messages of one call in an HTTP exchange: Connect, the Open Inference Protocol's REST form,
// OpenAI's.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "server/call/call.h"
#include "server/transports/http/http_exchange.h"
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

// One object for each call.
//
// Thread: one at a time. Errors go to the client: by WriteError, or by WriteEnd if a stream has begun.
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
  // meter counts what the message takes, and what reading it takes beside. Not for requests that are no messages
  // (HttpCall::ReadBody).
  virtual absl::Status ReadRequest(HttpRequest& /*request*/, google::protobuf::Message& /*message*/,
                                   MemoryMeter& /*meter*/) {
    return absl::InternalError("the requests of this path are no messages");
  }

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

class HttpCall final : public Call {
 public:
  // Begins a call of `operation` with the exchange's request. It answers the exchange. `environment` and `operation`
  // must outlive the call. `max_body_bytes`: of a call with one message.
  static void Start(const CallEnvironment& environment, const Operation& operation,
                    const std::shared_ptr<HttpExchange>& exchange, std::unique_ptr<HttpCodec> codec,
                    size_t max_body_bytes);

  // Use Start.
  HttpCall(const CallEnvironment& environment, const Operation& operation, std::shared_ptr<HttpExchange> exchange,
           std::unique_ptr<HttpCodec> codec);

  absl::Status Read(google::protobuf::Message& message) override;
  // Reads a request that is no message by `read`, which gets what HttpCodec::ReadRequest gets.
  using ReadRequest = absl::FunctionRef<absl::Status(HttpRequest& request, MemoryMeter& meter)>;
  absl::Status ReadBody(ReadRequest read);

 private:
  std::shared_ptr<HttpCall> Self() { return std::static_pointer_cast<HttpCall>(shared_from_this()); }

  // Call:
  absl::StatusOr<CallAnswer> Encode(google::protobuf::Message&& message) const override;
  Received Look() override;
  void BeginRead() override;
  void BeginWrite(CallAnswer& answer) override;
  void Finish(const absl::Status& work_status, std::optional<CallAnswer> answer) override;
  void Abort(const absl::Status& /*why*/) override { exchange_->Abort(); }
  void KeepAbortable() override {}

  // Writes and frees the answer.
  void WritePart(CallAnswer& answer);
  // Begins the work, once the body is in the request if the call has one message.
  void BeginWork();
  absl::Status ReadUnpacked(HttpRequest& request, ReadRequest read);
  // Continues BeginRead with more of the body.
  void ReceivePart(absl::StatusOr<std::string> part);
  void AddFields(const absl::Status& status, HttpResponse& response);
  void BeginStream();
  absl::StatusOr<HttpResponse> WriteAnswer(std::optional<CallAnswer> answer);
  void SendEnd(const absl::Status& status, std::optional<CallAnswer> answer);

  const std::shared_ptr<HttpExchange> exchange_;
  const std::unique_ptr<HttpCodec> codec_;
  const bool streams_answers_;
  bool streaming_ = false;  // the head of a stream was sent
  std::string received_;    // of a stream of requests: not decoded yet
  Budget::Share received_memory_;
  PackedMessage packed_;     // the next message
  absl::Status read_error_;  // of a stream of requests
};

// Makes the codec of one call from the head of its request. An error is the answer.
using MakeHttpCodec = std::function<absl::StatusOr<std::unique_ptr<HttpCodec>>(const HttpRequest& head)>;

// Makes `plan` serve calls of `operation`. The other arguments are those of HttpCall::Start.
void ServeCalls(const CallEnvironment& environment, const Operation& operation, size_t max_body_bytes,
                MakeHttpCodec make_codec, HttpPlan& plan);

}  // namespace longshort::server
