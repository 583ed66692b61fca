// Unary RPCs and operations, made from a handler that sees only the request and the call's record.
//
//   AnswerAtOnce<Request, Response>(names, [](CallRecord& record, const Request& request)
//       -> absl::StatusOr<Response> {...})
//   for handlers that need no engine: they run on the thread that read the message.
//
//   AnswerLater<Request, Response>(names, [](CallRecord& record, Request request, auto answer) -> absl::Status {...})
//   for handlers that answer later. After OK, `answer`, an Answerer, is called once with an absl::StatusOr<Response>,
//   at once or later, on any thread. An error ends the call at once.
//
// WorkThatAnswers makes the same of requests that are no messages. Its `Response` is CallAnswer if the answers write
// themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/call/call.h"

namespace longshort::server {

// The work of a call that has one answer.
class UnaryWork : public CallWork {
 public:
  explicit UnaryWork(Call& call) : call_(call) {}

  void Cancel(const absl::Status& /*reason*/) final { call_.record().Cancel(); }
  bool HasWork() const final ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return in_work_; }
  std::optional<CallAnswer> LastAnswer() final ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return std::exchange(answer_, std::nullopt);
  }

  // Ends the work and the call, with an answer or with its error.
  template <typename Response>
  void Answer(absl::StatusOr<Response> response) {
    call_.End(EndWork(std::move(response)));
  }
  // The same with the answer that `make` returns; see Call::RunForAnswer.
  template <typename Make>
  void AnswerFrom(Make make) {
    call_.RunForAnswer(call_.record(), [this, make = std::move(make)]() mutable { Answer(make()); });
  }

 protected:
  Call& call() { return call_; }
  void BeginWork() {
    const MutexLock lock(call_.mutex());
    in_work_ = true;
  }
  // Ends the work, with an answer or with the error that this returns.
  template <typename Response>
  absl::Status EndWork(absl::StatusOr<Response> response) {
    absl::StatusOr<CallAnswer> answer = Encode(std::move(response));
    absl::Status status = answer.status();
    const MutexLock lock(call_.mutex());
    in_work_ = false;
    if (status.ok()) {
      answer_ = *std::move(answer);
    } else {
      call_.NoteEnd(status);  // together with the end of the work, so that no thread ends the call with OK
    }
    return status;
  }

 private:
  template <typename Message>
  absl::StatusOr<CallAnswer> Encode(absl::StatusOr<Message> message) {
    LS_RETURN_IF_ERROR(message.status());
    LS_RETURN_IF_ERROR(call_.HoldAnswer(*message));
    return call_.Encode(*std::move(message));
  }
  static absl::StatusOr<CallAnswer> Encode(absl::StatusOr<CallAnswer> answer) { return answer; }

  Call& call_;
  bool in_work_ ABSL_GUARDED_BY(call_.mutex()) = false;
  std::optional<CallAnswer> answer_ ABSL_GUARDED_BY(call_.mutex());
};

// Answers a call once, by any thread: with a message, or with a CallAnswer that writes itself. It holds the call.
template <typename Response>
class Answerer final {
 public:
  explicit Answerer(std::shared_ptr<UnaryWork> work) : work_(std::move(work)) {}

  void operator()(absl::StatusOr<Response> response) const {
    From([response = std::move(response)]() mutable { return std::move(response); });
  }
  // Encodes a message in this thread, which reads messages.
  void AtOnce(absl::StatusOr<Response> response) const { work_->Answer(std::move(response)); }
  // See UnaryWork::AnswerFrom. `make` returns an absl::StatusOr<Response>.
  template <typename Make>
  void From(Make make) const {
    work_->AnswerFrom(std::move(make));
  }

 private:
  std::shared_ptr<UnaryWork> work_;
};

// A callback for a result: answers with what `convert` makes of it, at once if that writes itself later.
template <typename Response, typename Convert>
auto Answering(const Answerer<Response>& answer, Convert convert) {
  return [answer, convert = std::move(convert)](auto result) {
    if constexpr (std::is_same_v<Response, CallAnswer>) {
      answer.AtOnce(convert(std::move(result)));
    } else {
      answer.From([convert, result = std::move(result)]() mutable { return convert(std::move(result)); });
    }
  };
}

// Operation::work for `handle`. `read` reads the request: read(call, request) returns an absl::Status.
template <typename Request, typename Response, typename Read, typename Handle>
std::function<std::unique_ptr<CallWork>(Call&)> WorkThatAnswers(Read read, Handle handle) {
  class Work final : public UnaryWork {
   public:
    Work(Call& call, const Read& read, const Handle& handle) : UnaryWork(call), read_(read), handle_(handle) {}

   private:
    absl::Status Take() override {
      Request request;
      LS_RETURN_IF_ERROR(read_(call(), request));
      BeginWork();
      const Answerer<Response> answer(std::shared_ptr<UnaryWork>(call().shared_from_this(), this));
      const absl::Status status = handle_(call().record(), std::move(request), answer);
      return status.ok() ? status : EndWork(absl::StatusOr<Response>(status));
    }

    const Read read_;
    const Handle handle_;
  };
  return [read = std::move(read), handle = std::move(handle)](Call& call) {
    return std::make_unique<Work>(call, read, handle);
  };
}

template <typename Request, typename Response, typename Handle>
Rpc AnswerLater(const CallNames& names, Handle handle) {
  const auto read = [](Call& call, Request& request) { return call.Read(request); };
  return Streaming<Request, Response>(names, RpcKind::kUnary,
                                      WorkThatAnswers<Request, Response>(read, std::move(handle)));
}

// A handler that answers at once with what handle(record, request) returns.
template <typename Handle>
auto AtOnce(Handle handle) {
  return [handle = std::move(handle)](CallRecord& record, const auto& request, const auto& answer) {
    answer.AtOnce(handle(record, request));
    return absl::OkStatus();
  };
}

template <typename Request, typename Response, typename Handle>
Rpc AnswerAtOnce(const CallNames& names, Handle handle) {
  return AnswerLater<Request, Response>(names, AtOnce(std::move(handle)));
}

}  // namespace longshort::server
