// A session on its way out of a server, and into one, in parts.
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
#include "server/calls/call_names.h"
#include "server/sessions/archive_format.h"
#include "server/sessions/session_seal.h"
#include "server/sessions/transfer_budget.h"

namespace longshort::server {

// For the client that keeps the session meanwhile. Servers trust only the sealed data.
struct SessionHeader {
  int64_t data_bytes = 0;
  std::string fingerprint;
  int64_t session_tokens = 0;
  std::string server;  // SessionTransfers::server of where it came from
};

// A header, then data, then a seal.
using SessionPart = std::variant<SessionHeader, std::string, Seal>;

class SessionExport final {
 public:
  // Sets aside for `client` what the largest session of the model may take. Errors: RESOURCE_EXHAUSTED if too much is
  // on its way.
  static absl::StatusOr<SessionExport> Create(const SessionTransfers& transfers, const std::string& client,
                                              std::shared_ptr<const core::ServedLanguageModel> model);

  // `owner`'s session, as the engine gave it. Once, before any Next.
  void Begin(const std::string& owner, core::SessionArchive archive);
  // The next part; nothing behind the seal.
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

// A session on its way in. It begins if there is room for all of it, but takes only what has come of it: a client that
// says much and sends little is in nobody's way. Nothing of the data is believed before the seal has proved them.
//
// Thread: one thread at a time.
class SessionImport final {
 public:
  // For this model. The session must be `owner`'s, or anybody's without one; `client` is whose room it takes. The
  // references must outlive this.
  SessionImport(const SessionTransfers& transfers, const CallNames& names,
                std::shared_ptr<const core::ServedLanguageModel> model, std::optional<std::string> owner,
                std::string client)
      : transfers_(transfers),
        names_(names),
        model_(std::move(model)),
        owner_(std::move(owner)),
        client_(std::move(client)) {}

  // Whether the header has come; data and the seal may come then.
  bool begun() const { return reader_.has_value(); }
  int64_t received_bytes() const { return reader_.has_value() ? reader_->received_bytes() : 0; }

  // Errors: FAILED_PRECONDITION for a session of another model, INVALID_ARGUMENT for more bytes than a session has,
  // RESOURCE_EXHAUSTED if too much is on its way.
  absl::Status TakeHeader(const SessionHeader& header);
  // Errors: DATA_LOSS for what cannot be a session's, RESOURCE_EXHAUSTED if others have taken the room meanwhile.
  absl::Status TakeData(std::string_view data);
  // The session, which is the owner's and this model's. Once, last. Errors: DATA_LOSS if the data were changed or are
  // cut short, PERMISSION_DENIED for another key or client, FAILED_PRECONDITION for another model.
  absl::StatusOr<ExportedSession> TakeSeal(const Seal& seal);
  // What the engine said to the session, as the client is told: OK if all of it was here already. Errors: also ABORTED
  // if that is because it came from this very run of the server.
  absl::Status ResultOf(const absl::Status& engine_status) const;

 private:
  const SessionTransfers& transfers_;
  const CallNames& names_;
  const std::shared_ptr<const core::ServedLanguageModel> model_;
  const std::optional<std::string> owner_;
  const std::string client_;
  // From the header on.
  TransferBudget::Share share_;
  std::optional<SessionSealer> sealer_;
  std::optional<ArchiveReader> reader_;
  bool from_here_ = false;
};

}  // namespace longshort::server
