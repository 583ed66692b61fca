#include "server/sessions/session_export.h"

#include <utility>

#include "base/status_macros.h"

namespace longshort {
namespace {

// Bytes of data in a part. A client that takes messages of gRPC's usual 4 MiB takes these.
constexpr size_t kChunkBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<SessionExport> SessionExport::Create(const SessionTransfers& transfers, const std::string& client,
                                                    std::shared_ptr<const ServedLanguageModel> model) {
  LS_ASSIGN_OR_RETURN(TransferBudget::Share share,
                      transfers.budget->Take(client, model->engine->LargestSession().cache_bytes));
  LS_ASSIGN_OR_RETURN(SessionSealer sealer, SessionSealer::Create(transfers.key));
  return SessionExport(transfers.server, std::move(model), std::move(share), std::move(sealer));
}

void SessionExport::Begin(const std::string& owner, SessionArchive archive) {
  session_tokens_ = static_cast<int64_t>(archive.tokens.size());
  const LanguageModelInfo& info = model_->info;
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

}  // namespace longshort
