#include "server/handlers/session_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/session/session_store.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

// Bytes of data in a part: well below gRPC's default message limit of 4 MiB.
constexpr size_t kChunkBytes = size_t{1} << 20;

// Reserved before any data has arrived, because an import itself has a cost.
constexpr int64_t kFirstBytes = int64_t{64} << 10;

absl::Status CheckModel(const char* what, const std::string& of_session, const std::string& of_model) {
  if (of_session == of_model) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the session belongs to a model of ", what, " ", Quoted(of_session),
                                                    "; this one's is ", Quoted(of_model)));
}

}  // namespace

absl::StatusOr<SessionExport> SessionExport::Create(const SessionTransfers& transfers, const std::string& client,
                                                    std::shared_ptr<const core::ServedLanguageModel> model) {
  LS_ASSIGN_OR_RETURN(TransferBudget::Share share,
                      transfers.budget->Take(client, model->engine->LargestSession().cache_bytes));
  LS_ASSIGN_OR_RETURN(SessionSealer sealer, SessionSealer::Create(transfers.key));
  return SessionExport(transfers.server, std::move(model), std::move(share), std::move(sealer));
}

void SessionExport::Begin(const std::string& owner, core::SessionArchive archive) {
  session_tokens_ = static_cast<int64_t>(archive.tokens.size());
  const models::LanguageModelInfo& info = model_->info;
  writer_.emplace(
      ExportedSession{.origin = {.client = owner, .fingerprint = info.fingerprint, .precision = info.precision},
                      .archive = std::move(archive)});
  share_.SetAmount(writer_->bytes());
}

absl::StatusOr<std::optional<SessionPart>> SessionExport::Next() {
  if (!std::exchange(header_given_, true)) {
    return SessionHeader{.data_bytes = writer_->bytes(),
                         .fingerprint = model_->info.fingerprint,
                         .session_tokens = session_tokens_,
                         .server = server_};
  }
  if (std::string data = writer_->Next(kChunkBytes); !data.empty()) {
    LS_RETURN_IF_ERROR(sealer_.Add(data));
    return data;
  }
  if (std::exchange(sealed_, true)) return std::nullopt;
  LS_ASSIGN_OR_RETURN(Seal seal, sealer_.Finish());
  return seal;
}

absl::Status SessionImport::TakeHeader(const SessionHeader& header) {
  LS_RETURN_IF_ERROR(CheckModel("fingerprint", header.fingerprint, model_->info.fingerprint));
  const int64_t max = MaxArchiveBytes(model_->engine->LargestSession());
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return names_.Of("header.data_bytes"); }, header.data_bytes, 1, max));
  const int64_t first = std::min(header.data_bytes, kFirstBytes);
  LS_ASSIGN_OR_RETURN(share_, transfers_.budget->Take(client_, first, header.data_bytes - first));
  LS_ASSIGN_OR_RETURN(SessionSealer sealer, SessionSealer::Create(transfers_.key));
  sealer_.emplace(std::move(sealer));
  reader_.emplace(header.data_bytes);
  from_here_ = !header.server.empty() && header.server == transfers_.server;
  return absl::OkStatus();
}

absl::Status SessionImport::TakeData(std::string_view data) {
  const int64_t bytes = reader_->received_bytes() + static_cast<int64_t>(data.size());
  if (bytes > share_.bytes()) LS_RETURN_IF_ERROR(share_.Grow(bytes));
  LS_RETURN_IF_ERROR(reader_->Append(data));
  return sealer_->Add(data);
}

absl::StatusOr<ExportedSession> SessionImport::TakeSeal(const Seal& seal) {
  LS_ASSIGN_OR_RETURN(const Seal made, sealer_->Finish());
  LS_RETURN_IF_ERROR(CheckSeal(made, seal));
  LS_ASSIGN_OR_RETURN(ExportedSession session, reader_->Finish());
  LS_RETURN_IF_ERROR(CheckModel("fingerprint", session.origin.fingerprint, model_->info.fingerprint));
  LS_RETURN_IF_ERROR(CheckModel("precision", session.origin.precision, model_->info.precision));
  if (owner_.value_or(session.origin.client) != session.origin.client) {
    return absl::PermissionDeniedError("the session belongs to another client");
  }
  return session;
}

absl::Status SessionImport::ResultOf(const absl::Status& engine_status) const {
  if (!core::HoldsAllOf(engine_status)) return engine_status;
  if (!from_here_) return absl::OkStatus();
  return absl::AbortedError("this server exported the session and still has it; import it on another server");
}

}  // namespace longshort::server
