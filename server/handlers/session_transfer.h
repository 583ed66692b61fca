// Export of a session from a server, and import into one, in parts.
//
// Thread: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/session/session.h"
#include "server/access/session_seal.h"
#include "server/call/call_memory.h"
#include "server/calls/call_names.h"
#include "server/handlers/archive_format.h"

namespace longshort::server {

// Information for the client that stores the session. Servers trust only the sealed data.
struct SessionHeader {
  int64_t data_bytes = 0;
  std::string fingerprint;
  int64_t session_tokens = 0;
  std::string server;  // SessionTransfers::server of the exporting server
};

// A header, then data, then a seal.
using SessionPart = std::variant<SessionHeader, std::string, Seal>;

class SessionExport final {
 public:
  // Reserves budget of `client` for the largest session of the model. Errors: RESOURCE_EXHAUSTED if too much data is in
  // transfer.
  static absl::StatusOr<SessionExport> Create(const SessionTransfers& transfers, const std::string& client,
                                              std::shared_ptr<const core::ServedLanguageModel> model);

  // Sets `owner`'s session, as the engine exported it. Call it once, before Next.
  void Begin(const std::string& owner, core::SessionArchive archive);
  // The next part; nullopt after the seal.
  absl::StatusOr<std::optional<SessionPart>> Next();

 private:
  SessionExport(std::string server, std::shared_ptr<const core::ServedLanguageModel> model, TransferBudget::Share share,
                SessionSealer sealer)
      : server_(std::move(server)), model_(std::move(model)), share_(std::move(share)), sealer_(std::move(sealer)) {}

  std::string server_;
  std::shared_ptr<const core::ServedLanguageModel> model_;
  TransferBudget::Share share_;
  SessionSealer sealer_;
  std::optional<ArchiveWriter> writer_;
  int64_t session_tokens_ = 0;
  bool header_given_ = false;
  bool sealed_ = false;
};

// An import begins only if there is room for the whole session, but takes memory only as data arrives. So a client that
// announces much and sends little blocks no other client. No data is trusted before the seal is verified.
//
// Thread: one thread at a time.
class SessionImport final {
 public:
  // For this model. The session must belong to `owner`, unless that is unset. `client` is charged for the memory. The
  // references must outlive this.
  SessionImport(const SessionTransfers& transfers, const CallNames& names,
                std::shared_ptr<const core::ServedLanguageModel> model, std::optional<std::string> owner,
                std::string client)
      : transfers_(transfers),
        names_(names),
        model_(std::move(model)),
        owner_(std::move(owner)),
        client_(std::move(client)) {}

  // Whether the header was read. Only then data and the seal may follow.
  bool begun() const { return reader_.has_value(); }
  int64_t received_bytes() const { return reader_.has_value() ? reader_->received_bytes() : 0; }

  // Errors: FAILED_PRECONDITION for a session of another model, INVALID_ARGUMENT for more bytes than a session can
  // have, RESOURCE_EXHAUSTED if too much data is in transfer.
  absl::Status TakeHeader(const SessionHeader& header);
  // Errors: DATA_LOSS for invalid data, RESOURCE_EXHAUSTED if other transfers have taken the room meanwhile.
  absl::Status TakeData(std::string_view data);
  // The verified session, which belongs to the owner and to this model. Call it once, last. Errors: DATA_LOSS if the
  // data was changed or cut short, PERMISSION_DENIED for another key or owner, FAILED_PRECONDITION for another model.
  absl::StatusOr<ExportedSession> TakeSeal(const Seal& seal);
  // Converts the engine's status to the client's: OK if the engine already had the whole session; but ABORTED if it had
  // it because this same run of the server exported it.
  absl::Status ResultOf(const absl::Status& engine_status) const;

 private:
  const SessionTransfers& transfers_;
  const CallNames& names_;
  const std::shared_ptr<const core::ServedLanguageModel> model_;
  const std::optional<std::string> owner_;
  const std::string client_;
  // Set by the header.
  TransferBudget::Share share_;
  std::optional<SessionSealer> sealer_;
  std::optional<ArchiveReader> reader_;
  bool from_here_ = false;
};

}  // namespace longshort::server
