#include "server/rpc/health_service.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/admission/call_ending.h"
#include "server/rpc/immediate_call.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/names.h"
#include "server/rpc/rpc_call.h"
#include "server/rpc/short_request.h"

namespace longshort {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

HealthCheckResponse::ServingStatus StatusOf(std::optional<bool> serving) {
  if (!serving.has_value()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

// One watch: it writes what it finds on the board when that is not what it wrote last. While a message is on its way
// nothing is kept but that the board may have changed: a client that reads nothing costs no more.
//
// Somebody is at work for the call (CallEnding) while a message is on its way. Ownership is shared between gRPC (until
// OnDone) and the board, which calls while it lives.
class WatchCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                        public std::enable_shared_from_this<WatchCall> {
 public:
  WatchCall(const CallEnvironment& environment, HealthBoard& board, HeldStreams& watches,
            grpc::CallbackServerContext* context)
      : board_(board), watches_(watches), context_(*context), call_(environment, kHealthWatchNames, *context) {}

  static WatchCall* Start(const CallEnvironment& environment, HealthBoard& board, HeldStreams& watches,
                          grpc::CallbackServerContext* context, const grpc::ByteBuffer& request) {
    const auto call = std::make_shared<WatchCall>(environment, board, watches, context);
    call->grpc_reference_ = call;
    if (call->ending_.Enter()) {
      if (const absl::Status status = call->Begin(request); !status.ok()) call->ending_.End(status);
      call->FinishIf(call->ending_.Leave());
    }
    return call.get();
  }

 private:
  absl::Status Begin(const grpc::ByteBuffer& bytes) {
    LS_RETURN_IF_ERROR(call_.record().Admit());
    LS_ASSIGN_OR_RETURN(const HealthCheckRequest request, TakeShortRequest<HealthCheckRequest>(bytes));
    name_ = request.service();
    LS_ASSIGN_OR_RETURN(held_, watches_.Add(context_.peer(), [weak = weak_from_this()] {
      if (const std::shared_ptr<WatchCall> call = weak.lock()) call->GiveWay();
    }));
    watch_ = board_.Watch(name_, [weak = weak_from_this()] {
      if (const std::shared_ptr<WatchCall> call = weak.lock()) call->Look();
    });
    Look();
    return absl::OkStatus();
  }

  // A message that the client does not take would hold the end up.
  void GiveWay() {
    if (!ending_.Enter()) return;
    bool writing = false;
    {
      const std::lock_guard lock(mutex_);
      writing = writing_;
    }
    if (writing) context_.TryCancel();
    ending_.End(absl::ResourceExhaustedError(absl::StrCat("more than ", HealthService::kMostWatches,
                                                          " watches: one of a connection that has many gave way")));
    FinishIf(ending_.Leave());
  }

  void Look() {
    if (!ending_.Enter()) return;
    if (Write()) return;
    FinishIf(ending_.Leave());
  }

  // Whether a message is on its way now that was not before.
  bool Write() {
    {
      const std::lock_guard lock(mutex_);
      if (writing_) return false;
      HealthCheckResponse message;
      message.set_status(StatusOf(board_.Get(name_)));
      if (message.status() == written_) return false;
      absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(message);
      if (!bytes.ok()) return false;
      written_ = message.status();
      on_its_way_ = *std::move(bytes);
      writing_ = true;
    }
    call_.BeginAnswer();
    StartWrite(&on_its_way_);
    return true;
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
    }
    if (!ok) ending_.End(absl::CancelledError("the client went away"));
    Look();
    FinishIf(ending_.Leave());
  }

  void OnCancel() override { FinishIf(ending_.End(absl::CancelledError("the client cancelled"))); }
  void OnDone() override { grpc_reference_.reset(); }

  void FinishIf(const std::optional<absl::Status>& status) {
    if (!status.has_value()) return;
    board_.Forget(watch_);
    watches_.Remove(held_);
    Finish(call_.Finish(*status));
  }

  HealthBoard& board_;
  HeldStreams& watches_;
  grpc::CallbackServerContext& context_;
  RpcCall call_;
  std::shared_ptr<WatchCall> grpc_reference_;
  CallEnding ending_;
  std::string name_;
  int64_t held_ = 0;
  int64_t watch_ = 0;
  grpc::ByteBuffer on_its_way_;
  std::mutex mutex_;  // guards what follows
  bool writing_ = false;
  HealthCheckResponse::ServingStatus written_ = HealthCheckResponse::UNKNOWN;
};

}  // namespace

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return AnswerAtOnce<HealthCheckRequest>(
      environment_, kHealthCheckNames, context, request, response,
      [this](CallRecord&, const HealthCheckRequest& message) -> absl::StatusOr<HealthCheckResponse> {
        const std::optional<bool> serving = board_.Get(message.service());
        if (!serving.has_value()) return absl::NotFoundError("health knows no such name");
        HealthCheckResponse answer;
        answer.set_status(StatusOf(serving));
        return answer;
      });
}

grpc::ServerUnaryReactor* HealthService::List(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  return AnswerAtOnce<HealthListRequest>(environment_, kHealthListNames, context, request, response,
                                         [this](CallRecord&, const HealthListRequest&) {
                                           HealthListResponse answer;
                                           for (const auto& [name, serving] : board_.List()) {
                                             (*answer.mutable_statuses())[name].set_status(StatusOf(serving));
                                           }
                                           return absl::StatusOr<HealthListResponse>(std::move(answer));
                                         });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(grpc::CallbackServerContext* context,
                                                                 const grpc::ByteBuffer* request) {
  return WatchCall::Start(environment_, board_, watches_, context, *request);
}

}  // namespace longshort
