#include "server/http_rpc/http_call.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/http/content_coding.h"
#include "server/http/http_status.h"
#include "server/rpc/call_metadata.h"

namespace longshort::server {
namespace {

// For HttpExchange::Run: a coded message may be large once decoded.
constexpr size_t kLarge = std::numeric_limits<size_t>::max();

CallOrigin OriginOf(const HttpRequest& request) {
  const absl::StatusOr<absl::Time> deadline = ReadDeadline(request);
  CallOrigin origin =
      ReadOrigin([&request](const char* key) { return request.Find(key); }, deadline.value_or(absl::InfiniteFuture()));
  if (!origin.credentials.authorization.has_value()) origin.credentials = request.certificate;
  origin.peer = request.peer;
  origin.trace.authority = request.Find("host").value_or("");
  origin.status.Update(deadline.status());
  return origin;
}

// Sets the share to `bytes`. Errors: RESOURCE_EXHAUSTED with a Refusal.
absl::Status Hold(int64_t bytes, Budget::Share& memory) {
  absl::Status status = memory.Grow(bytes);
  if (!status.ok()) core::SetRefusal(status, {.retry_after = core::kMinRetryDelay});
  return status;
}

}  // namespace

void HttpCall::Start(const CallEnvironment& environment, const Rpc& rpc, std::shared_ptr<HttpExchange> exchange,
                     std::unique_ptr<HttpCodec> codec) {
  const HttpRequest& request = exchange->request();
  const size_t bytes = IsCoded(codec->CodingOf(request)) ? kLarge : request.body.size();
  HttpExchange& runner = *exchange;
  runner.Run(bytes, [&environment, &rpc, exchange = std::move(exchange), codec = std::move(codec)]() mutable {
    // The deleter holds the exchange: while one is in use, the server keeps what the destructor of a call needs.
    const std::shared_ptr<HttpCall> call(new HttpCall(environment, rpc, exchange, std::move(codec)),
                                         [exchange](HttpCall* one) { delete one; });
    const std::weak_ptr<HttpCall> weak = call;
    call->exchange_->WhenClosed([weak] {
      if (const std::shared_ptr<HttpCall> one = weak.lock(); one != nullptr) one->Cancelled();
    });
    if (const absl::Time deadline = call->record().engine_context().deadline; deadline != absl::InfiniteFuture()) {
      call->exchange_->SetTimer(deadline, [weak] {
        if (const std::shared_ptr<HttpCall> one = weak.lock(); one != nullptr) one->Expired();
      });
    }
    grpc::ByteBuffer first;
    call->Begin(&first);
  });
}

HttpCall::HttpCall(const CallEnvironment& environment, const Rpc& rpc, std::shared_ptr<HttpExchange> exchange,
                   std::unique_ptr<HttpCodec> codec)
    : Call(environment, rpc, OriginOf(exchange->request())),
      exchange_(std::move(exchange)),
      codec_(std::move(codec)),
      streams_answers_(rpc.kind == RpcKind::kServerStream || rpc.kind == RpcKind::kBidirectional),
      received_memory_(environment.message_memory) {}

absl::StatusOr<Budget::Share> HttpCall::Decode(grpc::ByteBuffer& /*bytes*/, google::protobuf::Message& message) {
  HttpRequest& request = exchange_->request();
  if (rpc().kind == RpcKind::kClientStream) {
    LS_RETURN_IF_ERROR(read_error_);
  } else {
    LS_RETURN_IF_ERROR(request.body_status);
    LS_ASSIGN_OR_RETURN(packed_, codec_->TakeOnly(request));
  }
  absl::StatusOr<Budget::Share> memory = Unpack(*message.GetDescriptor());
  const absl::Status read = memory.ok() ? codec_->ReadRequest(request, message) : memory.status();
  std::string().swap(request.body);
  LS_RETURN_IF_ERROR(read);
  return memory;
}

absl::StatusOr<Budget::Share> HttpCall::Unpack(const google::protobuf::Descriptor& type) {
  Budget::Share memory(environment().message_memory);
  std::string& body = exchange_->request().body;
  body = std::move(packed_.bytes);
  int64_t unpacked_bytes = 0;
  if (IsCoded(packed_.coding)) {
    environment().metrics.CountCompressedMessage();
    const int64_t max_bytes = MaxUnpackedBytes(environment().limits.message_bytes);
    LS_RETURN_IF_ERROR(Hold(max_bytes, memory));
    LS_RETURN_IF_ERROR(DecodeContent(packed_.coding, max_bytes, body));
    unpacked_bytes = static_cast<int64_t>(body.size());
  }
  if (body.size() <= kSmallMessage) return Budget::Share();
  LS_ASSIGN_OR_RETURN(const int64_t reading_bytes, codec_->MemoryOf(exchange_->request(), type));
  LS_RETURN_IF_ERROR(Hold(unpacked_bytes + reading_bytes, memory));
  return memory;
}

void HttpCall::BeginRead(grpc::ByteBuffer* /*message*/) {
  const absl::Status& status = exchange_->request().body_status;
  ReceivePart(status.ok() ? absl::StatusOr<std::string>("") : status);
}

void HttpCall::ReceivePart(absl::StatusOr<std::string> part) {
  if (part.ok()) {
    received_ += *part;
    // Until the next part this includes the message that is taken out.
    received_memory_.SetAmount(0);
    if (received_.size() > kSmallMessage) {
      if (const absl::Status held = Hold(static_cast<int64_t>(received_.size()), received_memory_); !held.ok())
        part = held;
    }
  }
  if (part.ok()) {
    absl::StatusOr<std::optional<PackedMessage>> message = codec_->TakeNext(received_);
    if (message.ok() && message->has_value()) {
      packed_ = **std::move(message);
      const size_t bytes = IsCoded(packed_.coding) ? kLarge : packed_.bytes.size();
      return exchange_->Run(bytes, [self = Self()] { self->ReadDone(true); });  // decodes it
    }
    if (!message.ok()) part = message.status();
  }
  if (!part.ok()) {
    read_error_ = part.status();
    return ReadDone(true);  // Decode returns the error
  }
  exchange_->Read([self = Self()](absl::StatusOr<std::string> more) {
    const bool at_end = more.ok() && more->empty();
    if (!at_end) return self->ReceivePart(std::move(more));
    if (self->received_.empty()) return self->ReadDone(false);
    self->read_error_ = absl::InvalidArgumentError("the request's body ends within a message");
    self->ReadDone(true);
  });
}

absl::StatusOr<std::unique_ptr<google::protobuf::Message>> HttpCall::Parse(const grpc::ByteBuffer& answer) const {
  std::unique_ptr<google::protobuf::Message> message(rpc().response->New());
  grpc::ByteBuffer bytes(answer);
  grpc::ProtoBufferReader reader(&bytes);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return message;
  return absl::InternalError("the answer cannot be read");
}

void HttpCall::AddFields(const absl::Status& status, HttpResponse& response) {
  response.fields.emplace_back(kIdKey, record().engine_context().id);
  if (record().load_outcome().has_value()) {
    response.fields.emplace_back("longshort-load-outcome", OutcomeName(*record().load_outcome()));
  }
  const std::optional<core::Refusal> refusal = core::GetRefusal(status);
  if (refusal.has_value()) {
    const absl::Duration seconds = absl::Ceil(refusal->retry_after, absl::Seconds(1));
    response.fields.emplace_back("Retry-After", absl::StrCat(absl::ToInt64Seconds(seconds)));
    response.fields.emplace_back("longshort-queue-depth", absl::StrCat(refusal->queue_depth));
  } else if (response.status == 503) {
    response.fields.emplace_back("Retry-After", "1");
  }
  if (response.status == 401) response.fields.emplace_back("WWW-Authenticate", "Bearer");
}

void HttpCall::BeginStream() {
  if (std::exchange(streaming_, true)) return;
  HttpResponse head{.content_type = codec_->stream_content_type(), .fields = codec_->stream_fields()};
  head.fields.emplace_back("Cache-Control", "no-cache");
  AddFields(absl::OkStatus(), head);
  exchange_->BeginStream(std::move(head));
}

void HttpCall::BeginWrite(const grpc::ByteBuffer* message) {
  record().trace().BeginMessage();
  absl::StatusOr<std::string> part;
  absl::StatusOr<std::unique_ptr<google::protobuf::Message>> answer = Parse(*message);
  part = answer.ok() ? codec_->WriteMessage(**answer) : answer.status();
  if (!part.ok()) End(part.status());
  BeginStream();
  exchange_->Write(std::move(part).value_or(""), [self = Self()](bool ok) { self->WriteDone(ok); });
}

void HttpCall::Finish(const absl::Status& work_status, std::optional<grpc::ByteBuffer> answer) {
  absl::Status status = record().Finish(work_status);
  const size_t bytes = answer.has_value() ? answer->Length() : 0;
  exchange_->Run(bytes, [self = Self(), status = std::move(status), answer = std::move(answer)] {
    self->SendEnd(status, answer);
  });
}

absl::StatusOr<HttpResponse> HttpCall::WriteAnswer(const std::optional<grpc::ByteBuffer>& answer) {
  if (!answer.has_value()) return absl::InternalError("there is no answer");
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> message, Parse(*answer));
  return codec_->WriteAnswer(*message);
}

void HttpCall::SendEnd(const absl::Status& status, const std::optional<grpc::ByteBuffer>& answer) {
  HttpExchange::Done done = [self = Self()](bool) { self->Done(); };
  const bool has_parts = streams_answers_ && !answer.has_value();
  if (streaming_ || (has_parts && (status.ok() || codec_->errors_in_stream()))) {
    BeginStream();
    return exchange_->EndStream(codec_->WriteEnd(status), std::move(done));
  }
  absl::StatusOr<HttpResponse> response = status.ok() ? WriteAnswer(answer) : absl::StatusOr<HttpResponse>(status);
  if (!response.ok()) response = codec_->WriteError(response.status());
  AddFields(status, *response);
  EncodeContent(exchange_->request(), *response);
  exchange_->Answer(*std::move(response), std::move(done));
}

}  // namespace longshort::server
