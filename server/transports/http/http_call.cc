#include "server/transports/http/http_call.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/call/call_metadata.h"
#include "server/call/message_size.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

using MessagePointer = std::unique_ptr<const google::protobuf::Message>;

// Larger answers are encoded by a thread of CallEnvironment::work.
constexpr size_t kSmallAnswer = 4 << 10;

// When the client stops waiting, by the field Connect-Timeout-Ms, whatever the protocol. Errors: INVALID_ARGUMENT.
absl::StatusOr<absl::Time> ReadDeadline(const HttpRequest& request) {
  constexpr size_t kMaxDigits = 10;
  const std::optional<std::string> text = request.Find("connect-timeout-ms");
  if (!text.has_value()) return absl::InfiniteFuture();
  int64_t milliseconds = 0;
  if (text->size() > kMaxDigits || !absl::SimpleAtoi(*text, &milliseconds) || milliseconds < 0) {
    return absl::InvalidArgumentError("connect-timeout-ms must be a number of at most 10 digits: milliseconds");
  }
  return MonotonicNow() + absl::Milliseconds(milliseconds);
}

CallOrigin OriginOf(const HttpRequest& request) {
  const absl::StatusOr<absl::Time> deadline = ReadDeadline(request);
  CallOrigin origin =
      ReadOrigin([&request](const char* key) { return request.Find(key); }, deadline.value_or(absl::InfiniteFuture()));
  if (!origin.credentials.authorization.has_value()) origin.credentials = request.certificate;
  origin.credentials.grant = request.grant;
  origin.peer = request.peer;
  origin.answer_bytes = kHttpAnswerBytes;
  origin.trace.authority = request.Find("host").value_or("").substr(0, kMaxAuthorityBytes);
  origin.status.Update(deadline.status());
  return origin;
}

}  // namespace

void HttpCall::Start(const CallEnvironment& environment, const Operation& operation,
                     const std::shared_ptr<HttpExchange>& exchange, std::unique_ptr<HttpCodec> codec,
                     size_t max_body_bytes) {
  // The deleter holds the exchange: while one is in use, the server keeps what the destructor of a call needs.
  const std::shared_ptr<HttpCall> call(new HttpCall(environment, operation, exchange, std::move(codec)),
                                       [exchange](HttpCall* one) { delete one; });
  const std::weak_ptr<HttpCall> weak = call;
  exchange->WhenClosed([weak] {
    if (const std::shared_ptr<HttpCall> one = weak.lock(); one != nullptr) one->Cancelled();
  });
  if (!call->Open()) return;
  if (operation.kind == RpcKind::kClientStream || !exchange->request().body_status.ok()) return call->BeginWork();
  exchange->ReadBody(
      max_body_bytes, [call](int64_t bytes) { return call->HoldArriving(bytes); },
      [call](absl::StatusOr<std::string> body) {
        HttpRequest& request = call->exchange_->request();
        request.body_status = body.status();
        if (body.ok()) request.body = *std::move(body);
        call->BeginWork();
      });
}

void HttpCall::BeginWork() {
  if (operation().kind == RpcKind::kClientStream) {
    received_memory_ = record().MemoryShare();
  }
  if (const absl::Time deadline = record().engine_context().deadline; deadline != absl::InfiniteFuture()) {
    exchange_->SetTimer(deadline, [weak = weak_from_this()] {
      const std::shared_ptr<Call> one = weak.lock();
      if (one != nullptr) static_cast<HttpCall&>(*one).Expired();
    });
  }
  Begin();
}

HttpCall::HttpCall(const CallEnvironment& environment, const Operation& operation,
                   std::shared_ptr<HttpExchange> exchange, std::unique_ptr<HttpCodec> codec)
    : Call(environment, operation, OriginOf(exchange->request())),
      exchange_(std::move(exchange)),
      codec_(std::move(codec)),
      streams_answers_(operation.kind == RpcKind::kServerStream || operation.kind == RpcKind::kBidirectional) {}

absl::StatusOr<CallAnswer> HttpCall::Encode(google::protobuf::Message&& message) const {
  std::unique_ptr<google::protobuf::Message> kept(message.New());
  kept->GetReflection()->Swap(kept.get(), &message);
  size_t bytes = kept->ByteSizeLong();
  // The message of described tokens takes more memory than its copies as JSON.
  if (bytes > kSmallAnswer) bytes = std::max(bytes, kept->SpaceUsedLong() / codec_->copies());
  return CallAnswer{.bytes = bytes, .content = std::move(kept)};
}

Call::Received HttpCall::Look() {
  const HttpRequest& request = exchange_->request();
  if (operation().kind == RpcKind::kClientStream) {
    return {.bytes = static_cast<int64_t>(packed_.bytes.size()), .is_compressed = IsCoded(packed_.coding)};
  }
  constexpr absl::Duration kTimeOfJson = absl::Nanoseconds(50);
  // In chunks, a body may take twice its size until it is read.
  Received received{.bytes = static_cast<int64_t>(request.body.capacity() + request.query.size()),
                    .is_compressed = IsCoded(codec_->CodingOf(request))};
  if (request.MediaType() == kJsonType) received.time_of_byte = kTimeOfJson;
  return received;
}

absl::Status HttpCall::Read(google::protobuf::Message& message) {
  return ReadBody(
      [&](HttpRequest& request, MemoryMeter& meter) { return codec_->ReadRequest(request, message, meter); });
}

absl::Status HttpCall::ReadBody(ReadRequest read) {
  HttpRequest& request = exchange_->request();
  if (operation().kind == RpcKind::kClientStream) {
    LS_RETURN_IF_ERROR(read_error_);
  } else {
    LS_RETURN_IF_ERROR(request.body_status);
    LS_ASSIGN_OR_RETURN(packed_, codec_->TakeOnly(request));
  }
  request.body = std::move(packed_.bytes);
  const absl::Status status = ReadUnpacked(request, read);
  std::string().swap(request.body);
  return status;
}

absl::Status HttpCall::ReadUnpacked(HttpRequest& request, ReadRequest read) {
  if (IsCoded(packed_.coding)) {
    environment().metrics.CountCompressedMessage();
    const int64_t before = memory().amount();
    LS_RETURN_IF_ERROR(DecodeContent(
        packed_.coding, MaxUnpackedBytes(environment().limits.message_bytes),
        [&](int64_t bytes) { return core::Hold(before + bytes, memory()); }, request.body));
  }
  MemoryMeter meter = request.body.size() <= kSmallMessage ? MemoryMeter() : MemoryMeter(memory(), memory().amount());
  absl::Status status = read(request, meter);
  if (meter.status().ok()) return status;
  absl::Status refused = meter.status();
  core::SetRefusal(refused, {.retry_after = core::kMinRetryDelay});
  return refused;
}

void HttpCall::BeginRead() {
  const absl::Status& status = exchange_->request().body_status;
  ReceivePart(status.ok() ? absl::StatusOr<std::string>("") : status);
}

void HttpCall::ReceivePart(absl::StatusOr<std::string> part) {
  if (part.ok()) {
    received_ += *part;
    // Until the next part this includes the message that is taken out.
    if (const absl::Status held = core::Hold(static_cast<int64_t>(received_.capacity()), received_memory_); !held.ok())
      part = held;
  }
  if (part.ok()) {
    absl::StatusOr<std::optional<PackedMessage>> message = codec_->TakeNext(received_);
    if (message.ok() && message->has_value()) {
      packed_ = **std::move(message);
      std::string(received_).swap(received_);  // the capacity was the message's
      // Posted: a stream of many small messages would fill the stack.
      return exchange_->RunSoon([self = Self()] { self->ReadDone(true); });
    }
    if (!message.ok()) part = message.status();
  }
  if (!part.ok()) {
    read_error_ = part.status();
    return ReadDone(true);  // ReadBody returns the error
  }
  exchange_->Read([self = Self()](absl::StatusOr<std::string> more) {
    const bool at_end = more.ok() && more->empty();
    if (!at_end) return self->ReceivePart(std::move(more));
    if (self->received_.empty()) return self->ReadDone(false);
    self->read_error_ = absl::InvalidArgumentError("the request's body ends within a message");
    self->ReadDone(true);
  });
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
  head.fields.emplace_back("X-Accel-Buffering", "no");  // nginx would hold kilobytes back
  AddFields(absl::OkStatus(), head);
  exchange_->BeginStream(std::move(head));
}

void HttpCall::BeginWrite(CallAnswer& answer) {
  record().trace().BeginMessage();
  if (answer.bytes <= kSmallAnswer) return WritePart(answer);
  SetTransportBytes(codec_->copies() * answer.bytes);
  RunLater([self = Self(), &answer] { self->WritePart(answer); });  // Call keeps it until WriteDone
}

void HttpCall::WritePart(CallAnswer& answer) {
  auto* const write = std::get_if<WriteAnswerJson>(&answer.content);
  absl::StatusOr<std::string> part =
      write != nullptr ? (*write)() : codec_->WriteMessage(*std::get<MessagePointer>(answer.content));
  answer.content = MessagePointer();
  if (!part.ok()) End(part.status());
  BeginStream();
  const size_t bytes = part.ok() ? part->capacity() : 0;
  const bool is_charged = std::max(answer.bytes, bytes) > kSmallAnswer;
  if (is_charged) SetTransportBytes(bytes);
  exchange_->Write(std::move(part).value_or(""), [self = Self(), is_charged](bool ok) {
    if (is_charged) self->SetTransportBytes(0);
    self->WriteDone(ok);
  });
}

void HttpCall::Finish(const absl::Status& work_status, std::optional<CallAnswer> answer) {
  const size_t bytes = answer.has_value() ? answer->bytes : 0;
  const absl::Status held = record().answers().Hold(static_cast<int64_t>(codec_->copies() * bytes));
  absl::Status status = record().Finish(held.ok() ? work_status : held);
  auto send = [self = Self(), status = std::move(status), answer = std::move(answer)]() mutable {
    self->SendEnd(status, std::move(answer));
  };
  if (bytes > kSmallAnswer) return RunLater(std::move(send));
  exchange_->RunSoon(std::move(send));
}

absl::StatusOr<HttpResponse> HttpCall::WriteAnswer(std::optional<CallAnswer> answer) {
  if (!answer.has_value()) return absl::InternalError("there is no answer");
  if (auto* const write = std::get_if<WriteAnswerJson>(&answer->content); write != nullptr) {
    return HttpResponse{.body = (*write)(), .content_type = kJsonType};
  }
  return codec_->WriteAnswer(*std::get<MessagePointer>(answer->content));
}

void HttpCall::SendEnd(const absl::Status& status, std::optional<CallAnswer> answer) {
  HttpExchange::Done done = [self = Self()](bool) { self->Done(); };
  const bool has_parts = streams_answers_ && !answer.has_value();
  if (streaming_ || (has_parts && (status.ok() || codec_->errors_in_stream()))) {
    BeginStream();
    return exchange_->EndStream(codec_->WriteEnd(status), std::move(done));
  }
  absl::StatusOr<HttpResponse> response =
      status.ok() ? WriteAnswer(std::move(answer)) : absl::StatusOr<HttpResponse>(status);
  if (!response.ok()) response = codec_->WriteError(response.status());
  AddFields(status, *response);
  EncodeContent(exchange_->request(), *response);
  response->body.shrink_to_fit();  // it may have grown to twice its size
  record().answers().SetHeld(static_cast<int64_t>(response->body.capacity()));
  record().answers().SetWaiting(true);
  exchange_->Answer(*std::move(response), std::move(done));
}

void ServeCalls(const CallEnvironment& environment, const Operation& operation, size_t max_body_bytes,
                MakeHttpCodec make_codec, HttpPlan& plan) {
  plan.is_call = !operation.names.observes();
  plan.serve = [&environment, &operation, max_body_bytes, make_codec = std::move(make_codec),
                write_error = plan.write_error](const std::shared_ptr<HttpExchange>& exchange) {
    absl::StatusOr<std::unique_ptr<HttpCodec>> codec = make_codec(exchange->request());
    if (!codec.ok()) return exchange->Answer(write_error(codec.status()));
    HttpCall::Start(environment, operation, exchange, *std::move(codec), max_body_bytes);
  };
}

}  // namespace longshort::server
