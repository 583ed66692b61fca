#include "server/longshort_v1/import_session.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "longshort/v1/sessions.pb.h"
#include "server/admission/call_ending.h"
#include "server/calls/field_error.h"
#include "server/handlers/session_check.h"
#include "server/longshort_v1/from_messages.h"
#include "server/longshort_v1/names.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/pause_watch.h"
#include "server/rpc/rpc_call.h"
#include "server/sessions/session_import.h"

namespace longshort {
namespace {

// What a client must send within --slow-reader-timeout to keep its place; a smaller session, or the last piece, less.
constexpr int64_t kLeastBytes = int64_t{64} << 10;

// One call: messages are taken one at a time, and the engine is given the session when its seal has proved it.
//
// Ownership is shared between gRPC (until OnDone) and the engine (until it has answered).
class ImportCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<ImportCall> {
 public:
  ImportCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : transfers_(environment.session_transfers),
        longest_pause_(environment.slow_reader_timeout),
        gate_(environment.gate),
        call_(environment, kImportSessionNames, *context),
        record_(call_.record()),
        response_(response) {}
  ~ImportCall() override { gate_.Forget(gate_watch_); }

  static ImportCall* Start(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                           grpc::ByteBuffer* response) {
    const auto call = std::make_shared<ImportCall>(environment, context, response);
    call->grpc_reference_ = call;
    call->watch_ = PauseWatch::Start(call->longest_pause_, [weak = call->weak_from_this()] {
      if (const std::shared_ptr<ImportCall> open = weak.lock()) open->OnPause();
    });
    // A server that stops would not have the session for long.
    call->gate_watch_ = environment.gate.WhenStopping([weak = call->weak_from_this()] {
      if (const std::shared_ptr<ImportCall> open = weak.lock()) {
        open->End(absl::UnavailableError("the server is stopping"));
      }
    });
    if (call->ending_.Enter()) {
      if (const absl::Status status = call->record_.Admit(); !status.ok()) call->ending_.End(status);
      call->ReadOn();
    }
    return call.get();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ending_.Enter()) return;
    const absl::Status status = ok ? Take(incoming_) : CutShort();
    incoming_.Clear();
    if (!status.ok()) ending_.End(status);
    ReadOn();
  }

  void OnCancel() override {
    record_.Cancel();
    End(absl::CancelledError("the client cancelled"));
  }

  void OnPause() {
    End(absl::DeadlineExceededError(absl::StrCat("the client sent less than ", kLeastBytes, " bytes in ",
                                                 absl::FormatDuration(longest_pause_), " (--slow-reader-timeout)")));
  }

  void OnDone() override { grpc_reference_.reset(); }

  // Whoever is at work for the call begins the next read, and is at work no longer.
  void ReadOn() {
    if (!sealed_ && !ending_.ended()) StartRead(&incoming_);
    FinishIf(ending_.Leave());
  }

  absl::Status Take(const grpc::ByteBuffer& bytes) {
    LS_ASSIGN_OR_RETURN(const v1::ImportSessionRequest request, TakeMessage<v1::ImportSessionRequest>(bytes));
    if (!session_.has_value()) return Begin(request);
    if (!request.has_part()) return FieldError("kind", "another beginning", "a part of the session");
    const v1::SessionPart& part = request.part();
    if (!session_->begun()) return TakeHeader(part);
    switch (part.part_case()) {
      case v1::SessionPart::kData:
        return TakeData(part.data());
      case v1::SessionPart::kSeal:
        return TakeSeal(FromMessage(part.seal()));
      default:
        return absl::DataLossError("behind the session's header stands something else than data and a seal");
    }
  }

  absl::Status Begin(const v1::ImportSessionRequest& request) {
    if (!request.has_beginning()) return FieldError("kind", "no beginning", "one in the first message");
    const v1::ImportBeginning& beginning = request.beginning();
    LS_RETURN_IF_ERROR(CheckSessionId(beginning.session_id(), record_.names()));
    LS_RETURN_IF_ERROR(CheckSessionsMove(transfers_));
    session_id_ = beginning.session_id();
    std::optional<std::string> owner = record_.session_owner().name();
    if (beginning.keep_owner()) {
      LS_RETURN_IF_ERROR(CheckKeepsOwner(record_));
      owner.reset();
    }
    LS_ASSIGN_OR_RETURN(model_, record_.FindLanguageModel(FromMessage(beginning.model())));
    session_.emplace(transfers_, record_.names(), model_, std::move(owner), record_.engine_context().client);
    return absl::OkStatus();
  }

  absl::Status TakeHeader(const v1::SessionPart& part) {
    if (!part.has_header()) return absl::DataLossError("the session's header is missing");
    LS_RETURN_IF_ERROR(session_->TakeHeader(FromMessage(part.header())));
    watch_->GoOn();
    return absl::OkStatus();
  }

  absl::Status TakeData(const std::string& data) {
    LS_RETURN_IF_ERROR(session_->TakeData(data));
    if (session_->received_bytes() >= go_on_bytes_ + kLeastBytes) {
      go_on_bytes_ = session_->received_bytes();
      watch_->GoOn();
    }
    return absl::OkStatus();
  }

  absl::Status TakeSeal(const Seal& seal) {
    sealed_ = true;
    LS_ASSIGN_OR_RETURN(ExportedSession session, session_->TakeSeal(seal));
    LS_ASSIGN_OR_RETURN(const SessionKey key, KeyOfImported(record_, session.origin.client, session_id_));
    watch_->Stop();
    if (!ending_.Enter()) return absl::CancelledError("the call ended before its session was whole");  // for the engine
    const auto tokens = static_cast<int64_t>(session.archive.tokens.size());
    model_->engine->ImportSession(
        key, std::move(session.archive),
        [keep = shared_from_this(), tokens](const absl::Status& status) { keep->OnImported(status, tokens); });
    return absl::OkStatus();
  }

  absl::Status CutShort() const {
    if (!session_.has_value() || !session_->begun()) {
      return absl::DataLossError("the session is cut short: not even its header came");
    }
    return absl::DataLossError(
        absl::StrCat("the session is cut short: ", session_->received_bytes(), " bytes came, and no seal"));
  }

  // By a thread of the engine's.
  void OnImported(const absl::Status& status, int64_t tokens) {
    absl::Status ended = session_->ResultOf(status);
    if (ended.ok()) {
      v1::ImportSessionResponse response;
      response.set_session_tokens(tokens);
      absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(response);
      ended = bytes.status();
      if (bytes.ok()) *response_ = *std::move(bytes);
    }
    ending_.End(ended);
    FinishIf(ending_.Leave());
  }

  void End(const absl::Status& status) { FinishIf(ending_.End(status)); }

  void FinishIf(const std::optional<absl::Status>& status) {
    if (!status.has_value()) return;
    watch_->Stop();
    // Before the client hears of it, who may come again at once.
    session_.reset();
    Finish(call_.Finish(*status));
  }

  const SessionTransfers& transfers_;
  const absl::Duration longest_pause_;
  CallGate& gate_;
  RpcCall call_;
  CallRecord& record_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<ImportCall> grpc_reference_;
  CallEnding ending_;
  int64_t gate_watch_ = 0;
  std::shared_ptr<PauseWatch> watch_;
  // By one thread at a time: who takes a message.
  grpc::ByteBuffer incoming_;
  std::string session_id_;
  std::shared_ptr<const ServedLanguageModel> model_;  // from the first message on, as the next one
  std::optional<SessionImport> session_;
  int64_t go_on_bytes_ = 0;  // had come when the client went on last
  bool sealed_ = false;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ImportSession(const CallEnvironment& environment,
                                                         grpc::CallbackServerContext* context,
                                                         grpc::ByteBuffer* response) {
  return ImportCall::Start(environment, context, response);
}

}  // namespace longshort
