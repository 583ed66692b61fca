#include "server/transports/grpc/grpc_service.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/inflate.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/call/call.h"
#include "server/call/call_metadata.h"
#include "server/call/message_size.h"

namespace longshort::server {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

class Reader final : public grpc::ProtoBufferReader {
 public:
  explicit Reader(grpc::ByteBuffer& bytes) : ProtoBufferReader(&bytes) {}

  // gRPC does not decompress messages for this server, and keeps the algorithm beside the bytes.
  bool is_compressed() { return status().ok() && reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE; }
};

std::string_view NextPiece(grpc::ProtoBufferReader& bytes) {
  const void* data = nullptr;
  int size = 0;
  while (bytes.Next(&data, &size)) {
    if (size > 0) return {static_cast<const char*>(data), static_cast<size_t>(size)};
  }
  return {};
}

// Replaces the bytes by their content.
absl::Status Decompress(grpc::ByteBuffer& bytes, int64_t max_bytes, Budget::Share& memory) {
  Reader packed(bytes);
  Inflater inflater([&packed] { return NextPiece(packed); }, max_bytes);
  std::vector<grpc::Slice> pieces;
  for (size_t read = kPieceBytes; read == kPieceBytes;) {
    LS_RETURN_IF_ERROR(core::Hold(memory.amount() + static_cast<int64_t>(kPieceBytes), memory));
    grpc::Slice piece(kPieceBytes);
    absl::StatusOr<size_t> got =
        inflater.Read(reinterpret_cast<char*>(const_cast<uint8_t*>(piece.begin())), kPieceBytes);
    if (absl::IsResourceExhausted(got.status())) {
      // The words of gRPC's own error for a plain message.
      return absl::ResourceExhaustedError(
          absl::StrCat("Received message larger than max (", max_bytes, " bytes): ", got.status().message()));
    }
    if (!got.ok()) {
      return absl::Status(got.status().code(),
                          absl::StrCat("the request cannot be decompressed: ", got.status().message()));
    }
    read = *got;
    pieces.push_back(read == kPieceBytes ? std::move(piece) : piece.sub(0, read));
  }
  bytes = grpc::ByteBuffer(pieces.data(), pieces.size());
  return absl::OkStatus();
}

absl::Status Charge(grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type, Budget::Share& memory) {
  Reader content(bytes);
  const MessageSize size = MeasureMessage(content, type, kMaxElements);
  LS_RETURN_IF_ERROR(CheckElements(size));
  return core::Hold(memory.amount() + size.memory, memory);
}

}  // namespace

bool IsCompressed(grpc::ByteBuffer& bytes) { return Reader(bytes).is_compressed(); }

absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message, int64_t max_bytes,
                          Budget::Share& memory) {
  if (IsCompressed(bytes)) LS_RETURN_IF_ERROR(Decompress(bytes, max_bytes, memory));
  if (bytes.Length() > kSmallMessage) LS_RETURN_IF_ERROR(Charge(bytes, *message.GetDescriptor(), memory));
  Reader reader(bytes);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", message.GetDescriptor()->full_name(),
                                                 ": malformed, or a string field is not UTF-8"));
}

namespace {

using google::protobuf::Message;
using grpc::ByteBuffer;
using grpc::CallbackServerContext;

using Unary = grpc::ServerUnaryReactor;
using Writing = grpc::ServerWriteReactor<ByteBuffer>;
using Bidirectional = grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>;

// Reads a message from its bytes. `most`: Operation::max_request_bytes.
absl::Status ReadMessage(const CallEnvironment& environment, size_t most, ByteBuffer& bytes, Message& message,
                         Budget::Share& memory) {
  // gRPC also begins a call of one message if the message did not arrive: the client cancelled, the deadline passed,
  // the message was over the limit, or there was none. The context may not show that yet, but the bytes do.
  if (!bytes.Valid()) return absl::CancelledError("the call ended before its message arrived");
  if (most > 0 && bytes.Length() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", bytes.Length(), " bytes; it must have at most ", most));
  }
  if (IsCompressed(bytes)) environment.metrics.CountCompressedMessage();
  return ParseMessage(bytes, message, most > 0 ? static_cast<int64_t>(most) : environment.limits.message_bytes, memory);
}

// Whether a call that ended so was refused. No queue has charged its client for it.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

// A Call as a gRPC reactor. There are three reactor types for two reasons. gRPC reads the single message of a unary or
// server-streaming call before the call begins. And it runs only unary reactors inline, without waking a thread.
template <typename Reactor>
class GrpcCall final : public Reactor, public Call {
 public:
  // `request` and `response`, if the reactor has them, live as long as `context`.
  static Reactor* Start(const CallEnvironment& environment, const Rpc& rpc, ConnectionCounts& counts,
                        CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
    // gRPC passes the message as const and would keep it until the call ends. The call owns it and frees it early.
    const auto call =
        std::make_shared<GrpcCall>(environment, rpc, counts, *context, const_cast<ByteBuffer*>(request), response);
    if (call->Open()) {
      call->Begin();
    } else {
      call->Uncount();  // it is in no account, and gRPC keeps it until its status is written
    }
    return call.get();
  }

  GrpcCall(const CallEnvironment& environment, const Rpc& rpc, ConnectionCounts& counts, CallbackServerContext& context,
           ByteBuffer* request, ByteBuffer* response)
      : Call(environment, rpc,
             ReadCallMetadata(context,
                              {.certificates = environment.access != nullptr && environment.access->uses_certificates(),
                               .authority = environment.tracer != nullptr})),
        context_(context),
        received_(request == nullptr ? &read_ : request),
        response_(response),
        counts_(counts),
        own_counts_(counts.Of(record().peer())) {
    ++own_counts_.begun;
  }

  // Safe beside the reactor's end.
  void Uncount() {
    if (counted_.exchange(false)) --own_counts_.begun;
  }

 private:
  static constexpr bool kReads = std::is_same_v<Reactor, Bidirectional>;
  static constexpr bool kWrites = !std::is_same_v<Reactor, Unary>;

  // Call:
  absl::StatusOr<CallAnswer> Encode(Message&& message) const override {
    ByteBuffer bytes;
    bool own_buffer = false;
    const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
    if (!status.ok()) return absl::InternalError("the answer cannot be serialized: " + status.error_message());
    const size_t length = bytes.Length();
    return CallAnswer{.bytes = length, .content = std::move(bytes)};
  }
  Received Look() override {
    return {.bytes = static_cast<int64_t>(received_->Length()),
            .is_compressed = received_->Valid() && IsCompressed(*received_)};
  }
  absl::Status Read(Message& message) override {
    absl::Status status = ReadMessage(environment(), operation().max_request_bytes, *received_, message, memory());
    received_->Clear();
    return status;
  }
  void BeginRead() override {
    if constexpr (kReads) this->StartRead(received_);
  }
  void BeginWrite(CallAnswer& answer) override {
    record().trace().BeginMessage();
    SendId();
    if constexpr (kWrites) this->StartWrite(&std::get<ByteBuffer>(answer.content));
  }
  void Finish(const absl::Status& work_status, std::optional<CallAnswer> answer) override {
    const absl::Status status = record().Finish(work_status);
    if (status.ok()) SendId();
    if (IsRefusal(status)) counts_.NoteRefused(own_counts_);
    grpc::Status final_status = SetTrailingMetadata(status, record(), context_);
    if constexpr (!kReads) received_->Clear();  // a refused call has not read it
    if (!answer.has_value()) return Reactor::Finish(std::move(final_status));
    if constexpr (kWrites) {
      answer_ = std::get<ByteBuffer>(std::move(answer->content));
      this->StartWriteAndFinish(&answer_, {}, std::move(final_status));
    } else {
      *response_ = std::get<ByteBuffer>(std::move(answer->content));
      Reactor::Finish(std::move(final_status));
    }
  }
  void Abort(const absl::Status& why) override {
    grpc_call* const call = finished_call_ == nullptr ? context_.c_call() : finished_call_.get();
    grpc_call_cancel_with_status(call, static_cast<grpc_status_code>(why.code()), std::string(why.message()).c_str(),
                                 nullptr);
  }
  // gRPC may destroy the context of a finished call at any time. A reference keeps the call itself.
  void KeepAbortable() override {
    grpc_call_ref(context_.c_call());
    finished_call_ = {context_.c_call(), grpc_call_unref};
  }

  // Called before each message. Before the first one it puts the call's id into the initial metadata. Clients take
  // initial metadata as the start of an answer and do not retry such a call. So a call that ends without a message has
  // its id in the trailing metadata only.
  void SendId() {
    if (!std::exchange(answering_, true)) context_.AddInitialMetadata(kIdKey, record().engine_context().id);
  }

  // The reactor's callbacks. Not all reactors have the first two, so these cannot be `override`.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winconsistent-missing-override"
#endif
  // NOLINTBEGIN(modernize-use-override)
  void OnReadDone(bool ok) { ReadDone(ok); }
  void OnWriteDone(bool ok) { WriteDone(ok); }
  // NOLINTEND(modernize-use-override)
#ifdef __clang__
#pragma clang diagnostic pop
#endif
  void OnCancel() override { Cancelled(); }
  void OnDone() override {
    Uncount();
    Done();
  }
  // For a unary call OnCancel and OnDone do as little as those of gRPC's own inlineable reactors, so gRPC may call them
  // inline instead of waking another thread. gRPC does not document this; without it calls only take longer.
  bool InternalInlineable() override { return !kWrites; }

  CallbackServerContext& context_;
  ByteBuffer* const received_;
  ByteBuffer* const response_;
  ConnectionCounts& counts_;
  ConnectionCounts::Counts& own_counts_;  // of its connection
  std::atomic<bool> counted_ = true;
  ByteBuffer read_;    // of a call that reads more than one message
  ByteBuffer answer_;  // sent with the status
  bool answering_ = false;
  std::shared_ptr<grpc_call> finished_call_;
};

grpc::internal::RpcMethod::RpcType TypeOf(RpcKind kind) {
  switch (kind) {
    case RpcKind::kUnary:
      return grpc::internal::RpcMethod::NORMAL_RPC;
    case RpcKind::kServerStream:
      return grpc::internal::RpcMethod::SERVER_STREAMING;
    case RpcKind::kClientStream:
      return grpc::internal::RpcMethod::CLIENT_STREAMING;
    case RpcKind::kBidirectional:
      break;
  }
  return grpc::internal::RpcMethod::BIDI_STREAMING;
}

grpc::internal::MethodHandler* HandlerOf(const CallEnvironment& environment, const Rpc& rpc, ConnectionCounts& counts) {
  if (rpc.kind == RpcKind::kUnary) {
    return new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
        [&](CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
          return GrpcCall<Unary>::Start(environment, rpc, counts, context, request, response);
        });
  }
  if (rpc.kind == RpcKind::kServerStream) {
    return new grpc::internal::CallbackServerStreamingHandler<ByteBuffer, ByteBuffer>(
        [&](CallbackServerContext* context, const ByteBuffer* request) {
          return GrpcCall<Writing>::Start(environment, rpc, counts, context, request, nullptr);
        });
  }
  return new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>([&](CallbackServerContext* context) {
    return GrpcCall<Bidirectional>::Start(environment, rpc, counts, context, nullptr, nullptr);
  });
}

}  // namespace

GrpcService::GrpcService(const CallEnvironment& environment, std::vector<Rpc> rpcs) : rpcs_(std::move(rpcs)) {
  paths_.reserve(rpcs_.size());
  for (const Rpc& rpc : rpcs_) {
    const std::string& path = paths_.emplace_back(absl::StrCat("/", rpc.names.method()));
    AddMethod(new grpc::internal::RpcServiceMethod(path.c_str(), TypeOf(rpc.kind), nullptr));
    MarkMethodRawCallback(static_cast<int>(paths_.size()) - 1, HandlerOf(environment, rpc, counts_));
  }
}

}  // namespace longshort::server
