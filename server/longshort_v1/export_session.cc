#include "server/longshort_v1/export_session.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "longshort/v1/sessions.pb.h"
#include "server/admission/call_ending.h"
#include "server/handlers/session_check.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/names.h"
#include "server/longshort_v1/to_messages.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/pause_watch.h"
#include "server/rpc/rpc_call.h"
#include "server/sessions/session_export.h"

namespace longshort {
namespace {

// One call: the engine gives the session, then one message at a time is made and written. Messages are made by gRPC's
// threads, a chunk each; the engine's thread only hands the session over.
//
// Somebody is at work for the call (CallEnding) all along: Begin, the engine, then what was begun last to be written.
//
// Ownership is shared between gRPC (until OnDone) and the engine (until it has answered).
class ExportCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ExportCall> {
 public:
  ExportCall(const CallEnvironment& environment, grpc::CallbackServerContext* context)
      : transfers_(environment.session_transfers),
        slow_reader_timeout_(environment.slow_reader_timeout),
        call_(environment, kExportSessionNames, *context),
        record_(call_.record()) {}

  static ExportCall* Start(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                           const grpc::ByteBuffer& request) {
    const auto call = std::make_shared<ExportCall>(environment, context);
    call->grpc_reference_ = call;
    if (call->ending_.Enter()) {
      if (const absl::Status status = call->Begin(request); !status.ok()) call->Leave(status);
    }
    return call.get();
  }

 private:
  // An error means that the engine was not asked.
  absl::Status Begin(const grpc::ByteBuffer& bytes) {
    LS_RETURN_IF_ERROR(record_.Admit());
    LS_ASSIGN_OR_RETURN(const v1::ExportSessionRequest request, TakeMessage<v1::ExportSessionRequest>(bytes));
    LS_RETURN_IF_ERROR(CheckSessionId(request.session_id(), record_.names()));
    LS_RETURN_IF_ERROR(CheckSessionsMove(transfers_));
    const std::optional<std::string> owner = request.has_owner() ? std::optional(request.owner()) : std::nullopt;
    LS_ASSIGN_OR_RETURN(const SessionKey key, FindSessionKey(record_, owner, request.session_id()));
    owner_ = owner.value_or(record_.session_owner().name());
    LS_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedLanguageModel> model,
                        record_.FindLanguageModel(FromMessage(request.model())));
    LS_ASSIGN_OR_RETURN(SessionExport session,
                        SessionExport::Create(transfers_, record_.engine_context().client, model));
    session_.emplace(std::move(session));
    model->engine->ExportSession(key, [keep = shared_from_this()](absl::StatusOr<SessionArchive> archive) {
      keep->OnExported(std::move(archive));
    });
    return absl::OkStatus();
  }

  // By a thread of the engine's, which gRPC's relieve.
  void OnExported(absl::StatusOr<SessionArchive> archive) {
    if (!archive.ok()) return Leave(archive.status());
    archive_ = *std::move(archive);
    // The timer holds no reference, since the call holds the timer; gRPC's reference stays until Finish.
    relief_.Set(gpr_now(GPR_CLOCK_MONOTONIC), [this](bool) { BeginWriting(); });
  }

  void BeginWriting() {
    watch_ = PauseWatch::Start(slow_reader_timeout_, [weak = weak_from_this()] {
      if (const std::shared_ptr<ExportCall> call = weak.lock()) call->OnPause();
    });
    session_->Begin(owner_, std::move(archive_));
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Leave(absl::CancelledError("the client went away"));
    watch_->GoOn();
    WriteNext();
  }

  void OnCancel() override {
    record_.Cancel();
    FinishIf(ending_.End(absl::CancelledError("the client cancelled")));
  }

  void OnPause() {
    if (!ending_.Enter()) return;
    call_.CancelSlowReader();
    Leave(absl::CancelledError("the client reads nothing"));
  }

  void OnDone() override { grpc_reference_.reset(); }

  void WriteNext() {
    if (ending_.ended()) return Leave(absl::OkStatus());  // with the status that it ended with
    absl::StatusOr<std::optional<SessionPart>> part = session_->Next();
    if (!part.ok() || !part->has_value()) return Leave(part.status());
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(ToMessage(**std::move(part)));
    if (!bytes.ok()) return Leave(bytes.status());
    on_its_way_ = *std::move(bytes);
    call_.BeginAnswer();
    StartWrite(&on_its_way_);
  }

  // Nobody is at work any more: the call ends with `status`, if it has not ended before.
  void Leave(const absl::Status& status) {
    ending_.End(status);
    FinishIf(ending_.Leave());
  }

  void FinishIf(const std::optional<absl::Status>& status) {
    if (!status.has_value()) return;
    if (watch_ != nullptr) watch_->Stop();
    // Before the client hears of it, who may come again at once.
    session_.reset();
    Finish(call_.Finish(*status));
  }

  const SessionTransfers& transfers_;
  const absl::Duration slow_reader_timeout_;
  RpcCall call_;
  CallRecord& record_;
  std::shared_ptr<ExportCall> grpc_reference_;
  CallEnding ending_;
  std::shared_ptr<PauseWatch> watch_;
  // By one thread at a time: Begin's, the engine's, then those of gRPC, one after the other.
  std::optional<SessionExport> session_;
  std::string owner_;
  SessionArchive archive_;
  grpc::Alarm relief_;
  grpc::ByteBuffer on_its_way_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportSession(const CallEnvironment& environment,
                                                          grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request) {
  return ExportCall::Start(environment, context, *request);
}

}  // namespace longshort
