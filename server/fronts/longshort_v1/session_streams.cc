// ExportSession and ImportSession.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "longshort/v1/sessions.pb.h"
#include "server/call/call.h"
#include "server/calls/call_names.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/handlers/session_transfer.h"
#include "server/handlers/sessions.h"

namespace longshort::server {
namespace {

// The engine delivers the session. Then one message at a time is made and written, each with one chunk of data. gRPC's
// threads make the messages; the engine's thread only hands over the session.
class SessionSender final : public CallWork {
 public:
  explicit SessionSender(Call& call) : call_(call) {}

 private:
  absl::Status Take() override {
    v1::ExportSessionRequest request;
    LS_RETURN_IF_ERROR(call_.Read(request));
    const SessionTransfers& transfers = call_.environment().session_transfers;
    CallRecord& record = call_.record();
    LS_RETURN_IF_ERROR(CheckSessionId(request.session_id(), record.names(), "session_id"));
    LS_RETURN_IF_ERROR(CheckSessionsMove(transfers));
    const std::optional<std::string> owner = request.has_owner() ? std::optional(request.owner()) : std::nullopt;
    LS_ASSIGN_OR_RETURN(const core::SessionKey key, FindSessionKey(record, owner, request.session_id()));
    owner_ = owner.value_or(record.session_owner().name());
    LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                        record.FindLanguageModel(FromMessage(request.model())));
    LS_ASSIGN_OR_RETURN(SessionExport session, SessionExport::Create(transfers, record.engine_context().client, model));
    {
      const MutexLock lock(call_.mutex());
      session_.emplace(std::move(session));
      step_ = Step::kRequested;
    }
    model->engine->ExportSession(key,
                                 [this, keep = call_.shared_from_this()](absl::StatusOr<core::SessionArchive> archive) {
                                   OnExported(std::move(archive));
                                 });
    return absl::OkStatus();
  }

  // Called on the engine's thread. The timer's thread continues, to keep the engine's thread free.
  void OnExported(absl::StatusOr<core::SessionArchive> archive) {
    {
      const MutexLock lock(call_.mutex());
      step_ = archive.ok() ? Step::kArchived : Step::kOver;
      if (archive.ok()) {
        archive_ = *std::move(archive);
        return call_.SetWorkTimer(MonotonicNow());
      }
    }
    call_.End(archive.status());
  }

  void OnTimer(absl::Time /*now*/) override {
    session_->Begin(owner_, std::move(archive_));
    const MutexLock lock(call_.mutex());
    step_ = Step::kWriting;
  }

  void Cancel(const absl::Status& reason) override {
    call_.record().Cancel();
    call_.End(reason);
  }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return step_ == Step::kRequested || step_ == Step::kArchived || (step_ == Step::kWriting && call_.is_well());
  }

  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (step_ != Step::kWriting || !call_.is_well()) return std::nullopt;
    absl::StatusOr<std::optional<SessionPart>> part = session_->Next();
    if (part.ok() && part->has_value()) {
      absl::StatusOr<CallAnswer> answer = call_.Encode(ToMessage(**std::move(part)));
      if (answer.ok()) return *std::move(answer);
      part = answer.status();
    }
    step_ = Step::kOver;
    call_.NoteEnd(part.status());
    return std::nullopt;
  }

  // Before the status is sent, because the client may call again at once.
  void Ended() override { session_.reset(); }

  enum class Step { kNew, kRequested, kArchived, kWriting, kOver };

  Call& call_;
  std::string owner_;
  core::SessionArchive archive_;
  std::optional<SessionExport> session_;
  Step step_ ABSL_GUARDED_BY(call_.mutex()) = Step::kNew;
};

// Bytes that a client must send within --slow-reader-timeout; fewer for a smaller session and for the last piece.
constexpr int64_t kMinBytes = int64_t{64} << 10;

// Takes one message at a time. The engine gets the session only after its seal was verified.
class SessionReceiver final : public CallWork {
 public:
  explicit SessionReceiver(Call& call) : call_(call), longest_pause_(call.environment().slow_reader_timeout) {}

 private:
  absl::Status Admitted() override {
    RestartTimer();
    return absl::OkStatus();
  }

  absl::Status Take() override {
    v1::ImportSessionRequest request;
    LS_RETURN_IF_ERROR(call_.Read(request));
    if (!session_.has_value()) return TakeBeginning(request);
    if (!request.has_part()) return FieldError("kind", "beginning again", "part after the first message");
    const v1::SessionPart& part = request.part();
    if (!session_->begun()) return TakeHeader(part);
    switch (part.part_case()) {
      case v1::SessionPart::kData:
        return TakeData(part.data());
      case v1::SessionPart::kSeal:
        return TakeSeal(FromMessage(part.seal()));
      default:
        return absl::DataLossError("the session's header is followed by a part that is neither data nor a seal");
    }
  }

  absl::Status TakeBeginning(const v1::ImportSessionRequest& request) {
    if (!request.has_beginning()) return FieldError("kind", "not beginning", "beginning in the first message");
    const v1::ImportBeginning& beginning = request.beginning();
    const SessionTransfers& transfers = call_.environment().session_transfers;
    CallRecord& record = call_.record();
    LS_RETURN_IF_ERROR(CheckSessionId(beginning.session_id(), record.names(), "beginning.session_id"));
    LS_RETURN_IF_ERROR(CheckSessionsMove(transfers));
    session_id_ = beginning.session_id();
    std::optional<std::string> owner = record.session_owner().name();
    if (beginning.keep_owner()) {
      LS_RETURN_IF_ERROR(CheckKeepsOwner(record));
      owner.reset();
    }
    LS_ASSIGN_OR_RETURN(model_, record.FindLanguageModel(FromMessage(beginning.model())));
    session_.emplace(transfers, record.names(), model_, std::move(owner), record.engine_context().client);
    return absl::OkStatus();
  }

  absl::Status TakeHeader(const v1::SessionPart& part) {
    if (!part.has_header()) return absl::DataLossError("the session's header is missing");
    LS_RETURN_IF_ERROR(session_->TakeHeader(FromMessage(part.header())));
    RestartTimer();
    return absl::OkStatus();
  }

  absl::Status TakeData(const std::string& data) {
    LS_RETURN_IF_ERROR(session_->TakeData(data));
    if (session_->received_bytes() >= progress_bytes_ + kMinBytes) {
      progress_bytes_ = session_->received_bytes();
      RestartTimer();
    }
    return absl::OkStatus();
  }

  absl::Status TakeSeal(const Seal& seal) {
    {
      const MutexLock lock(call_.mutex());
      sealed_ = true;
    }
    LS_ASSIGN_OR_RETURN(ExportedSession session, session_->TakeSeal(seal));
    LS_ASSIGN_OR_RETURN(const core::SessionKey key, KeyOfImported(call_.record(), session.origin.client, session_id_));
    {
      const MutexLock lock(call_.mutex());
      if (!call_.is_well()) return absl::CancelledError("the call ended before its session was complete");
      importing_ = true;
    }
    const auto tokens = static_cast<int64_t>(session.archive.tokens.size());
    model_->engine->ImportSession(
        key, std::move(session.archive),
        [this, keep = call_.shared_from_this(), tokens](const absl::Status& status) { OnImported(status, tokens); });
    return absl::OkStatus();
  }

  // Called on the engine's thread.
  void OnImported(const absl::Status& status, int64_t tokens) {
    absl::Status ended = session_->ResultOf(status);
    v1::ImportSessionResponse response;
    response.set_session_tokens(tokens);
    absl::StatusOr<CallAnswer> answer = call_.Encode(std::move(response));
    ended.Update(answer.status());
    {
      const MutexLock lock(call_.mutex());
      importing_ = false;
      if (ended.ok()) answer_ = *std::move(answer);
    }
    call_.End(ended);
  }

  absl::Status HalfClose() override {
    if (!session_.has_value() || !session_->begun()) {
      return absl::DataLossError("the session is cut short: its header is missing");
    }
    return absl::DataLossError(
        absl::StrCat("the session is cut short: it ends after ", session_->received_bytes(), " bytes without a seal"));
  }

  void Cancel(const absl::Status& reason) override {
    call_.record().Cancel();
    call_.End(reason);
  }

  // Restarts the timer, because the client has sent enough.
  void RestartTimer() {
    const MutexLock lock(call_.mutex());
    call_.SetWorkTimer(MonotonicNow() + longest_pause_);
  }

  void OnTimer(absl::Time /*now*/) override {
    {
      const MutexLock lock(call_.mutex());
      if (sealed_) return;
    }
    call_.End(
        absl::DeadlineExceededError(absl::StrCat("the client sent less than ", kMinBytes, " bytes in ",
                                                 absl::FormatDuration(longest_pause_), " (--slow-reader-timeout)")));
  }

  bool HasRoom() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return !sealed_; }
  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return importing_; }
  std::optional<CallAnswer> LastAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return std::exchange(answer_, std::nullopt);
  }

  // Before the status is sent, because the client may call again at once.
  void Ended() override { session_.reset(); }

  Call& call_;
  const absl::Duration longest_pause_;
  // Used by one thread at a time: the one that takes a message, then the engine's.
  std::string session_id_;
  std::shared_ptr<const core::ServedLanguageModel> model_;  // set by the first message, as session_
  std::optional<SessionImport> session_;
  int64_t progress_bytes_ = 0;  // received when the timer was last restarted
  bool sealed_ ABSL_GUARDED_BY(call_.mutex()) = false;
  bool importing_ ABSL_GUARDED_BY(call_.mutex()) = false;
  std::optional<CallAnswer> answer_ ABSL_GUARDED_BY(call_.mutex());
};

}  // namespace

std::unique_ptr<CallWork> MakeExportSession(Call& call) { return std::make_unique<SessionSender>(call); }

std::unique_ptr<CallWork> MakeImportSession(Call& call) { return std::make_unique<SessionReceiver>(call); }

}  // namespace longshort::server
