// A Call that came by HTTP: the same limits, order, metrics, log lines and traces as by gRPC.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/call.h"
#include "server/transports/http/http_codec.h"
#include "server/transports/http/http_exchange.h"

namespace longshort::server {

class HttpCall final : public Call {
 public:
  // Begins a call of `rpc` with the exchange's request. It answers the exchange. `environment` and `rpc` must outlive
  // the call. `max_body_bytes`: of a call with one message.
  static void Start(const CallEnvironment& environment, const Rpc& rpc, const std::shared_ptr<HttpExchange>& exchange,
                    std::unique_ptr<HttpCodec> codec, size_t max_body_bytes);

  // Use Start.
  HttpCall(const CallEnvironment& environment, const Rpc& rpc, std::shared_ptr<HttpExchange> exchange,
           std::unique_ptr<HttpCodec> codec);

 private:
  std::shared_ptr<HttpCall> Self() { return std::static_pointer_cast<HttpCall>(shared_from_this()); }

  // Call:
  absl::StatusOr<CallAnswer> Encode(google::protobuf::Message&& message) const override;
  Received Look() override;
  absl::Status Decode(google::protobuf::Message& message, Budget::Share& memory) override;
  void BeginRead() override;
  void BeginWrite(CallAnswer& answer) override;
  void Finish(const absl::Status& work_status, std::optional<CallAnswer> answer) override;
  void Abort(const absl::Status& /*why*/) override { exchange_->Abort(); }
  void KeepAbortable() override {}

  // Writes and frees the answer.
  void WritePart(CallAnswer& answer);
  // Begins the work, once the body is in the request if the call has one message.
  void BeginWork();
  absl::Status ReadUnpacked(HttpRequest& request, google::protobuf::Message& message, Budget::Share& memory);
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

// Makes `plan` serve calls of `rpc`. The other arguments are those of HttpCall::Start.
void ServeCalls(const CallEnvironment& environment, const Rpc& rpc, size_t max_body_bytes, MakeHttpCodec make_codec,
                HttpPlan& plan);

}  // namespace longshort::server
