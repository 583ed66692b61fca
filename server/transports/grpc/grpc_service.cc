#include "server/transports/grpc/grpc_service.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>

#include <algorithm>
#include <array>
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

// The unary methods that gRPC knows: those that clients call most. It finds them by a table of 160 bytes for each,
// which every connection has, and reads the message before the call begins. For other methods that takes a step more.
constexpr std::array<std::string_view, 6> kFrequent = {
    "longshort.v1.Inference/ScoreText", "longshort.v1.Inference/ClassifyImage",
    "longshort.v1.Inference/Embed",     "longshort.v1.Inference/Generate",
    "longshort.v1.Inference/Tokenize",  "inference.GRPCInferenceService/ModelInfer",
};

using google::protobuf::Message;
using grpc::ByteBuffer;
using grpc::CallbackServerContext;

using Unary = grpc::ServerUnaryReactor;
using Stream = grpc::ServerGenericBidiReactor;

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

// A Call as a gRPC reactor: Unary for frequent methods, which gRPC runs inline, without waking a thread; Stream for all
// others.
template <typename Reactor>
class GrpcCall final : public Reactor, public Call {
 public:
  // `request` and `response` of a Unary live as long as `context`.
  static Reactor* Start(const CallEnvironment& environment, const Rpc& rpc, ConnectionCounts& counts,
                        CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
    // gRPC passes the message as const and would keep it until the call ends. The call owns it and frees it early.
    const auto call =
        std::make_shared<GrpcCall>(environment, rpc, counts, *context, const_cast<ByteBuffer*>(request), response);
    if (call->begins_with_message_) {
      call->until_read_ = call;
      call->BeginRead();
    } else {
      call->OpenAndBegin();
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
        own_counts_(counts.Of(record().peer())),
        begins_with_message_(!kUnary && (rpc.kind == RpcKind::kUnary || rpc.kind == RpcKind::kServerStream)) {}

  // Safe beside the reactor's end.
  void Uncount() {
    if (counted_.exchange(false)) --own_counts_.begun;
  }

 private:
  static constexpr bool kUnary = std::is_same_v<Reactor, Unary>;

  void OpenAndBegin() {
    counted_ = true;
    ++own_counts_.begun;
    if (Open()) {
      Begin();
    } else {
      Uncount();  // it is in no account, and gRPC keeps it until its status is written
    }
  }

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
    if constexpr (!kUnary) this->StartRead(received_);
  }
  void BeginWrite(CallAnswer& answer) override {
    record().trace().BeginMessage();
    SendId();
    if constexpr (!kUnary) this->StartWrite(&std::get<ByteBuffer>(answer.content));
  }
  void Finish(const absl::Status& work_status, std::optional<CallAnswer> answer) override {
    const absl::Status status = record().Finish(work_status);
    if (status.ok()) SendId();
    if (IsRefusal(status)) counts_.NoteRefused(own_counts_);
    grpc::Status final_status = SetTrailingMetadata(status, record(), context_);
    if (kUnary || begins_with_message_) received_->Clear();  // a refused call has not read it
    if (!answer.has_value()) return Reactor::Finish(std::move(final_status));
    if constexpr (!kUnary) {
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
  void OnReadDone(bool ok) {
    if (!begins_with_message_) return ReadDone(ok);
    const std::shared_ptr<GrpcCall> call = std::move(until_read_);
    OpenAndBegin();
  }
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
  bool InternalInlineable() override { return kUnary; }

  CallbackServerContext& context_;
  ByteBuffer* const received_;
  ByteBuffer* const response_;
  ConnectionCounts& counts_;
  ConnectionCounts::Counts& own_counts_;  // of its connection
  const bool begins_with_message_;        // a Stream that reads only one
  std::atomic<bool> counted_ = false;
  std::shared_ptr<GrpcCall> until_read_;  // itself, while that message is read
  ByteBuffer read_;                       // of a Stream
  ByteBuffer answer_;                     // sent with the status
  bool answering_ = false;
  std::shared_ptr<grpc_call> finished_call_;
};

}  // namespace

GrpcService::GrpcService(const CallEnvironment& environment, std::vector<Rpc> rpcs)
    : environment_(environment), rpcs_(std::move(rpcs)) {
  int methods = 0;
  for (const Rpc& rpc : rpcs_) {
    const auto& [path, row] = *by_path_.emplace(absl::StrCat("/", rpc.names.method()), &rpc).first;
    if (std::find(kFrequent.begin(), kFrequent.end(), rpc.names.method()) == kFrequent.end()) continue;
    AddMethod(new grpc::internal::RpcServiceMethod(path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRawCallback(
        methods++, new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
                       [this, &rpc](CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
                         return GrpcCall<Unary>::Start(environment_, rpc, counts_, context, request, response);
                       }));
  }
}

void GrpcService::AddTo(grpc::ServerBuilder& builder) {
  builder.RegisterService(this);
  builder.RegisterCallbackGenericService(this);
}

grpc::ServerGenericBidiReactor* GrpcService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const auto found = by_path_.find(context->method());
  if (found == by_path_.end()) return CallbackGenericService::CreateReactor(context);
  return GrpcCall<Stream>::Start(environment_, *found->second, counts_, context, nullptr, nullptr);
}

}  // namespace longshort::server
