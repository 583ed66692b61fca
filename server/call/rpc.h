// What the server needs to serve one operation, and one RPC: an operation whose messages a protobuf service defines.
// Each protocol of gRPC has a list of RPCs, from which GrpcService (server/transports/grpc/grpc_service.h) is built.
//
// A unary operation has a handler (server/call/unary.h). A stream has a CallWork of its own.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/calls/call_names.h"

namespace longshort::server {

class Call;

// Writes an answer's JSON. Called once.
using WriteAnswerJson = absl::AnyInvocable<std::string()>;

// An answer of a call, from when its work has made it until it is sent.
struct CallAnswer {
  // The message's size on the wire, or about as much: the measure of UnreadAnswers.
  size_t bytes = 0;
  // What the transport makes of a message by Call::Encode: gRPC encodes it at once, in the thread that made it, and
  // HTTP keeps it until it is sent. The work of paths that only HTTP serves gives a function in place of a message. It
  // is called when the answer is sent, too, by a thread that may take its time.
  std::variant<grpc::ByteBuffer, std::unique_ptr<const google::protobuf::Message>, WriteAnswerJson> content;
};

// An answer that writes itself.
inline CallAnswer JsonAnswer(size_t bytes, WriteAnswerJson write) {
  return {.bytes = bytes, .content = std::move(write)};
}

// Processes the messages of one call. Its Call owns it.
//
// Thread: any, unless a function says otherwise. Calls of Take do not overlap. Call::mutex() guards the state that the
// functions called with the mutex held share with the others.
class CallWork {
 public:
  virtual ~CallWork() = default;

  // Called once the call is admitted. Errors end the call.
  virtual absl::Status Admitted() { return absl::OkStatus(); }
  // Reads the message that has arrived (Call::Read) and begins its work. Errors end the call; the message must then
  // leave no pending work.
  virtual absl::Status Take() = 0;
  // The client half-closed before the call ended. Not for calls with one message. Errors end the call.
  virtual absl::Status HalfClose() { return absl::OkStatus(); }
  // The client no longer waits for an answer, for `reason`. The work should end as soon as possible.
  virtual void Cancel(const absl::Status& reason) = 0;
  // The time set by Call::SetWorkTimer has come.
  virtual void OnTimer(absl::Time /*now*/) {}
  // The call ends: no work is pending, and the status is not sent yet. Called once, if Admitted was called.
  virtual void Ended() {}

  // REQUIRES for the functions below: the mutex is held.
  //
  // Whether the next message may be read. Not for calls with one message.
  virtual bool HasRoom() const { return false; }
  // Whether the call is idle while the client sends nothing. A stop does not wait for idle calls.
  virtual bool MayBeIdle() const { return false; }
  // Whether work is pending. The call does not end before it is done.
  virtual bool HasWork() const = 0;
  // Whether some work is held back. RemoveHeld drops it when the call ends with an error.
  virtual bool HasHeld() const { return false; }
  virtual void RemoveHeld() {}
  // The next answer to write; nullopt if there is none now. Called only while no write is pending.
  virtual std::optional<CallAnswer> NextAnswer() { return std::nullopt; }
  // The answer was written, or the write failed.
  virtual void Written() {}
  // The answer that is sent with the status, if the call ends with OK and has one answer.
  virtual std::optional<CallAnswer> LastAnswer() { return std::nullopt; }
};

enum class RpcKind { kUnary, kServerStream, kClientStream, kBidirectional };

struct Operation {
  // The names of the operation and of its fields, and the scope that its callers need.
  CallNames names;
  RpcKind kind = RpcKind::kUnary;
  // Makes the work of one call. Thread-safe.
  std::function<std::unique_ptr<CallWork>(Call&)> work;
  // gRPC rejects a longer request unparsed. 0: only the server's message limit applies.
  size_t max_request_bytes = 0;
};

struct Rpc : Operation {
  // Default instances of its messages.
  const google::protobuf::Message* request = nullptr;
  const google::protobuf::Message* response = nullptr;
  // Whether the RPC has no side effect: clients may retry it, and proxies may cache the answer.
  bool side_effect_free = false;
};

// package.Service of the RPC.
inline std::string_view ServiceOf(const Rpc& rpc) {
  const std::string_view method = rpc.names.method();
  return method.substr(0, method.find('/'));
}

// The same row, marked as free of side effects.
inline Rpc SideEffectFree(Rpc rpc) {
  rpc.side_effect_free = true;
  return rpc;
}

template <typename Request, typename Response>
Rpc Streaming(const CallNames& names, RpcKind kind, const std::function<std::unique_ptr<CallWork>(Call&)>& work) {
  return {{.names = names, .kind = kind, .work = work}, &Request::default_instance(), &Response::default_instance()};
}

// For the standard services. Their requests name one item each, streams keep the request, and callers may be
// anonymous. So requests are limited to a size far above the longest valid name.
inline constexpr FieldVocabulary kNoFields = {.name_of = [](const FieldPath&) { return std::string(); }};
inline constexpr size_t kMaxShortRequestBytes = 4096;

}  // namespace longshort::server
