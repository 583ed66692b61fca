// A unary call of gRPC's callback API: admitted, run, finished exactly once.
//
// Ownership is shared, because two sides let go in either order: gRPC (until OnDone) and the engine, whose listeners
// hold the call until they have been told the end. A call lives until both are through, and gRPC is not before the
// client has made room for the answer; so what only the work needed should be let go before. A client that takes
// nothing of a long answer for --slow-reader-timeout is cancelled, and so is one of many that take no short ones.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/rpc_call.h"

namespace longshort {

class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  // Makes a `Call`, runs it, and gives it to gRPC. `Call`'s constructor takes the environment, the context, `response`
  // and then `arguments`.
  template <typename Call, typename... Arguments>
  static grpc::ServerUnaryReactor* Start(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
                                         Arguments&&... arguments) {
    auto call = std::make_shared<Call>(environment, context, response, std::forward<Arguments>(arguments)...);
    UnaryCall& base = *call;
    base.self_ = call;
    absl::Status status = base.record().Admit();
    if (status.ok()) status = base.Run(*request);
    if (!status.ok()) base.FinishWithError(status);
    return call.get();
  }

 protected:
  UnaryCall(const CallEnvironment& environment, const CallNames& names, grpc::CallbackServerContext* context,
            grpc::ByteBuffer* response)
      : call_(environment, names, *context), response_(response), all_unwatched_(environment.unwatched_answer_bytes) {}

  // Begins the work. After OK the call ends by FinishWith... once, from here or later; an error ends it at once.
  virtual absl::Status Run(const grpc::ByteBuffer& request) = 0;

  template <typename Message>
  void FinishWith(const Message& message) {
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(message);
    if (!bytes.ok()) return FinishWithError(bytes.status());
    if (!MayGoUnwatched(static_cast<int64_t>(bytes->Length()))) watch_ = call_.WatchAnswer(self_);
    *response_ = *std::move(bytes);
    Finish(call_.Finish(absl::OkStatus()));
  }
  void FinishWithError(const absl::Status& status) { Finish(call_.Finish(status)); }

  CallRecord& record() { return call_.record(); }
  // For the engine's listeners.
  std::shared_ptr<UnaryCall> self() const { return self_; }

 private:
  // An answer that fits, with 5 bytes before it, into the window that HTTP/2's streams begin with. A timer for each of
  // them would cost more than short calls do.
  static constexpr int64_t kUnwatchedBytes = 65535 - 5;
  // What clients that give no window can keep of such answers, all together, with what a call itself takes; beyond it
  // each has its timer.
  static constexpr int64_t kUnwatchedBytesOfAll = int64_t{16} << 20;
  static constexpr int64_t kBytesOfCall = int64_t{16} << 10;

  // Counts the answer among those that nobody watches if it is short, and they are not too many.
  bool MayGoUnwatched(int64_t bytes) {
    if (bytes > kUnwatchedBytes) return false;
    unwatched_bytes_ = bytes + kBytesOfCall;
    if (all_unwatched_->fetch_add(unwatched_bytes_) + unwatched_bytes_ <= kUnwatchedBytesOfAll) return true;
    LetGo();
    return false;
  }
  void LetGo() { *all_unwatched_ -= std::exchange(unwatched_bytes_, 0); }

  void OnCancel() final { record().Cancel(); }
  void OnDone() final {
    LetGo();
    self_.reset();
  }
  // What the two above do is as little as what gRPC's own reactors do, for which this is meant: gRPC calls them where
  // it is, instead of waking another thread. gRPC promises nothing about it; without it calls only take longer.
  bool InternalInlineable() final { return true; }

  RpcCall call_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<UnaryCall> self_;
  std::shared_ptr<PauseWatch> watch_;  // of an answer that is long, or one of too many
  const std::shared_ptr<std::atomic<int64_t>> all_unwatched_;
  int64_t unwatched_bytes_ = 0;  // of this answer, in all_unwatched_
};

}  // namespace longshort
