#include "server/rpc/export_session.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "longshort/v1/sessions.pb.h"
#include "server/requests/session_reader.h"
#include "server/rpc/call_ending.h"
#include "server/rpc/call_record.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/pause_watch.h"
#include "server/sessions/archive_format.h"
#include "server/sessions/session_seal.h"

namespace longshort {
namespace {

// Bytes of data in a message. A client that takes messages of gRPC's usual 4 MiB takes these.
constexpr size_t kChunkBytes = size_t{1} << 20;

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
        record_(environment, "ExportSession", *context) {}

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
    LS_ASSIGN_OR_RETURN(const v1::ExportSessionRequest request, ParseMessage<v1::ExportSessionRequest>(bytes));
    LS_RETURN_IF_ERROR(CheckSessionId("session_id", request.session_id()));
    LS_RETURN_IF_ERROR(CheckSessionsMove(transfers_));
    LS_ASSIGN_OR_RETURN(model_, record_.FindLanguageModel(request.model()));
    LS_ASSIGN_OR_RETURN(share_, TakeForTransfer(transfers_.budget, model_->engine->LargestSession().cache_bytes));
    LS_ASSIGN_OR_RETURN(SessionSealer sealer, SessionSealer::Create(transfers_.key));
    sealer_.emplace(std::move(sealer));
    const std::string& client = record_.engine_context().client;
    model_->engine->ExportSession(
        {.client = client, .id = request.session_id()},
        [keep = shared_from_this()](absl::StatusOr<SessionArchive> archive) { keep->OnExported(std::move(archive)); });
    return absl::OkStatus();
  }

  // By a thread of the engine's, which gRPC's relieve.
  void OnExported(absl::StatusOr<SessionArchive> archive) {
    if (!archive.ok()) return Leave(archive.status());
    archive_ = *std::move(archive);
    StartSendInitialMetadata();
  }

  void OnSendInitialMetadataDone(bool ok) override {
    if (!ok) return Leave(absl::CancelledError("the client went away"));
    watch_ = PauseWatch::Start(slow_reader_timeout_, [weak = weak_from_this()] {
      if (const std::shared_ptr<ExportCall> call = weak.lock()) call->OnPause();
    });
    session_tokens_ = static_cast<int64_t>(archive_.tokens.size());
    const LanguageModelInfo& info = model_->info;
    writer_.emplace(ExportedSession{.owner = {.client = record_.engine_context().client,
                                              .fingerprint = info.fingerprint,
                                              .precision = info.precision},
                                    .archive = std::move(archive_)});
    share_.SetAmount(writer_->bytes());
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
    record_.CancelSlowReader();
    Leave(absl::CancelledError("the client reads nothing"));
  }

  void OnDone() override { grpc_reference_.reset(); }

  void WriteNext() {
    if (ending_.ended()) return Leave(absl::OkStatus());  // with the status that it ended with
    absl::StatusOr<std::optional<v1::SessionPart>> part = NextPart();
    if (!part.ok() || !part->has_value()) return Leave(part.status());
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(**part);
    if (!bytes.ok()) return Leave(bytes.status());
    on_its_way_ = *std::move(bytes);
    StartWrite(&on_its_way_);
  }

  // The header, then data, then the seal, then nothing.
  absl::StatusOr<std::optional<v1::SessionPart>> NextPart() {
    v1::SessionPart part;
    if (!std::exchange(header_written_, true)) {
      part.mutable_header()->set_data_bytes(writer_->bytes());
      part.mutable_header()->set_fingerprint(model_->info.fingerprint);
      part.mutable_header()->set_session_tokens(session_tokens_);
      return part;
    }
    if (std::string data = writer_->Next(kChunkBytes); !data.empty()) {
      LS_RETURN_IF_ERROR(sealer_->Add(data));
      part.set_data(std::move(data));
      return part;
    }
    if (std::exchange(sealed_, true)) return std::nullopt;
    LS_ASSIGN_OR_RETURN(Seal seal, sealer_->Finish());
    part.mutable_seal()->set_checksum(std::move(seal.checksum));
    part.mutable_seal()->set_authentication_code(std::move(seal.authentication_code));
    return part;
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
    writer_.reset();
    share_ = {};
    Finish(record_.Finish(*status));
  }

  const SessionTransfers& transfers_;
  const absl::Duration slow_reader_timeout_;
  CallRecord record_;
  std::shared_ptr<ExportCall> grpc_reference_;
  CallEnding ending_;
  std::shared_ptr<PauseWatch> watch_;
  std::shared_ptr<const ServedLanguageModel> model_;
  Budget::Share share_;
  // By one thread at a time: Begin's, the engine's, then those of gRPC, one after the other.
  SessionArchive archive_;
  int64_t session_tokens_ = 0;
  std::optional<SessionSealer> sealer_;
  std::optional<ArchiveWriter> writer_;
  bool header_written_ = false;
  bool sealed_ = false;
  grpc::ByteBuffer on_its_way_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportSession(const CallEnvironment& environment,
                                                          grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request) {
  return ExportCall::Start(environment, context, *request);
}

}  // namespace longshort
