// Table rows for unary RPCs, made from a handler that sees only the messages and the call's record.
//
//   AnswerAtOnce<Request, Response>(names, [](CallRecord& record, const Request& request)
//       -> absl::StatusOr<Response> {...})
//   for handlers that need no engine: they run on gRPC's thread.
//
//   AnswerLater<Request, Response>(names, [](CallRecord& record, Request request, auto answer) -> absl::Status {...})
//   for handlers that answer later. After OK, `answer` is called once with an absl::StatusOr<Response>, at once or
//   later, on any thread. It holds the call. An error ends the call at once.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/rpc/call.h"

namespace longshort::server {

// The work of a call that has one answer.
class UnaryWork : public CallWork {
 public:
  explicit UnaryWork(Call& call) : call_(call) {}

  void Cancel(const absl::Status& /*reason*/) final { call_.record().Cancel(); }
  bool HasWork() const final ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return in_work_; }
  std::optional<grpc::ByteBuffer> LastAnswer() final ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return std::exchange(answer_, std::nullopt);
  }

 protected:
  Call& call() { return call_; }
  void BeginWork() {
    const MutexLock lock(call_.mutex());
    in_work_ = true;
  }
  // Ends the work, with an answer or with the error that this returns.
  template <typename Response>
  absl::Status EndWork(const absl::StatusOr<Response>& response) {
    absl::StatusOr<grpc::ByteBuffer> bytes = response.ok() ? SerializeMessage(*response) : response.status();
    absl::Status status = bytes.status();
    const MutexLock lock(call_.mutex());
    in_work_ = false;
    if (status.ok()) answer_ = *std::move(bytes);
    return status;
  }

 private:
  Call& call_;
  bool in_work_ ABSL_GUARDED_BY(call_.mutex()) = false;
  std::optional<grpc::ByteBuffer> answer_ ABSL_GUARDED_BY(call_.mutex());
};

template <typename Request, typename Response, typename Handle>
Rpc AnswerLater(const CallNames& names, Handle handle) {
  class Work final : public UnaryWork {
   public:
    Work(Call& call, const Handle& handle) : UnaryWork(call), handle_(handle) {}

   private:
    absl::Status Take(google::protobuf::Message& request) override {
      BeginWork();
      auto answer = [self = std::shared_ptr<Work>(call().shared_from_this(), this)](
                        const absl::StatusOr<Response>& response) { self->call().End(self->EndWork(response)); };
      const absl::Status status =
          handle_(call().record(), std::move(static_cast<Request&>(request)), std::move(answer));
      return status.ok() ? status : EndWork(absl::StatusOr<Response>(status));
    }

    const Handle handle_;
  };
  return Streaming<Request, Response>(names, RpcKind::kUnary, [handle = std::move(handle)](Call& call) {
    return std::unique_ptr<CallWork>(std::make_unique<Work>(call, handle));
  });
}

template <typename Request, typename Response, typename Handle>
Rpc AnswerAtOnce(const CallNames& names, Handle handle) {
  return AnswerLater<Request, Response>(
      names, [handle = std::move(handle)](CallRecord& record, const Request& request, const auto& answer) {
        answer(absl::StatusOr<Response>(handle(record, request)));
        return absl::OkStatus();
      });
}

}  // namespace longshort::server
