// One row of the table of RPCs: what a server must know of an RPC to serve it. Each front has a list of rows; gRPC's
// service (server/rpc/grpc_service.h) is built from them.
//
// A unary RPC is one row with a handler (server/rpc/unary.h). An RPC that streams has a CallWork of its own.
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

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/calls/call_names.h"

namespace longshort::server {

class Call;

// What is done with the messages of one call. Its Call owns it.
//
// Thread: as each function says. Take comes one at a time. Call::mutex() guards what the functions that come with the
// mutex held share with the others.
class CallWork {
 public:
  virtual ~CallWork() = default;

  // The call was admitted. Errors end the call.
  virtual absl::Status Admitted() { return absl::OkStatus(); }
  // Takes a message, which is its own. Errors end the call; then the message has left nothing in work.
  virtual absl::Status Take(google::protobuf::Message& message) = 0;
  // The client sends no more, before the call has ended. Not for calls of one message. Errors end the call.
  virtual absl::Status HalfClose() { return absl::OkStatus(); }
  // Nobody waits for an answer any more, for this reason: the work ends as soon as it can.
  virtual void Cancel(const absl::Status& reason) = 0;
  // The time has come that Call::LookAt named.
  virtual void Look(absl::Time /*now*/) {}
  // The call ends: nothing is in work, and the client has not been told yet. Once, if Admitted was called.
  virtual void Ended() {}

  // With the mutex held:
  //
  // Whether the next message may be read. Not for calls of one message.
  virtual bool HasRoom() const { return false; }
  // Whether a client that sends nothing leaves the call idle: a server that stops does not wait for idle calls.
  virtual bool MayBeIdle() const { return false; }
  // Whether something is in work: the call does not end before.
  virtual bool HasWork() const = 0;
  // Whether work waits to begin; and that it never will, since the call ends with an error.
  virtual bool HasHeld() const { return false; }
  virtual void DropHeld() {}
  // The next message to write; nothing if there is none now. Asked only while no message is on its way.
  virtual std::optional<grpc::ByteBuffer> NextAnswer() { return std::nullopt; }
  // That message was written, or lost.
  virtual void Written() {}
  // The message that goes with the status, of a call that ends well and has one answer.
  virtual std::optional<grpc::ByteBuffer> LastAnswer() { return std::nullopt; }
};

enum class RpcKind { kUnary, kServerStream, kClientStream, kBidirectional };

struct Rpc {
  // Its names, those of its fields, and the scope that its callers need.
  CallNames names;
  RpcKind kind = RpcKind::kUnary;
  // The default instances of its messages.
  const google::protobuf::Message* request = nullptr;
  const google::protobuf::Message* response = nullptr;
  // Whether it changes nothing on the server: a client may repeat it, and a proxy may keep its answer.
  bool side_effect_free = false;
  // A longer request is refused unread; 0: the server's limit of messages holds alone.
  size_t max_request_bytes = 0;
  // Makes the work of a call. Thread-safe.
  std::function<std::unique_ptr<CallWork>(Call&)> work;
};

// package.Service of the RPC.
inline std::string_view ServiceOf(const Rpc& rpc) {
  const std::string_view method = rpc.names.method();
  return method.substr(0, method.find('/'));
}

// The same row, of an RPC that changes nothing.
inline Rpc SideEffectFree(Rpc rpc) {
  rpc.side_effect_free = true;
  return rpc;
}

// A row of an RPC that streams.
template <typename Request, typename Response>
Rpc Streaming(const CallNames& names, RpcKind kind, const std::function<std::unique_ptr<CallWork>(Call&)>& work) {
  return {.names = names,
          .kind = kind,
          .request = &Request::default_instance(),
          .response = &Response::default_instance(),
          .work = work};
}

// Of the standard services, whose requests name one thing each. Streams keep what they were asked, and anybody may ask:
// so a request must be short. The limit is far above the longest name that there is.
inline constexpr FieldVocabulary kNoFields = {.name_of = [](const FieldPath&) { return std::string(); }};
inline constexpr size_t kMaxShortRequestBytes = 4096;

}  // namespace longshort::server
