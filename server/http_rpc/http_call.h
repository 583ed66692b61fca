// A Call that came by HTTP: the same limits, order, metrics, log lines and traces as by gRPC.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/http/http_exchange.h"
#include "server/http_rpc/http_codec.h"
#include "server/rpc/call.h"

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
  Received Look(grpc::ByteBuffer& bytes) override;
  absl::Status Decode(grpc::ByteBuffer& bytes, google::protobuf::Message& message, Budget::Share& memory) override;
  void BeginRead(grpc::ByteBuffer* message) override;
  void BeginWrite(const grpc::ByteBuffer* message) override;
  void Finish(const absl::Status& work_status, std::optional<grpc::ByteBuffer> answer) override;
  void Abort(const absl::Status& /*why*/) override { exchange_->Abort(); }
  void KeepAbortable() override {}

  void WriteMessage(const grpc::ByteBuffer& message);
  // Begins the work, once the body is in the request if the call has one message.
  void BeginWork();
  absl::Status ReadUnpacked(HttpRequest& request, google::protobuf::Message& message, Budget::Share& memory);
  // Continues BeginRead with more of the body.
  void ReceivePart(absl::StatusOr<std::string> part);
  absl::StatusOr<std::unique_ptr<google::protobuf::Message>> Parse(const grpc::ByteBuffer& answer) const;
  void AddFields(const absl::Status& status, HttpResponse& response);
  void BeginStream();
  absl::StatusOr<HttpResponse> WriteAnswer(const std::optional<grpc::ByteBuffer>& answer);
  void SendEnd(const absl::Status& status, const std::optional<grpc::ByteBuffer>& answer);

  const std::shared_ptr<HttpExchange> exchange_;
  const std::unique_ptr<HttpCodec> codec_;
  const bool streams_answers_;
  bool streaming_ = false;  // the head of a stream was sent
  std::string received_;    // of a stream of requests: not decoded yet
  Budget::Share received_memory_;
  grpc::ByteBuffer no_bytes_;  // the message is in the exchange
  PackedMessage packed_;       // the next message
  absl::Status read_error_;    // of a stream of requests
};

}  // namespace longshort::server
