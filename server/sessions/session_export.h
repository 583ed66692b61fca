// A session on its way out: the parts that a client is given.
//
// Thread: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/session/session.h"
#include "server/sessions/archive_format.h"
#include "server/sessions/session_seal.h"
#include "server/sessions/transfer_budget.h"

namespace longshort {

// For whoever keeps the session meanwhile: servers trust the data only.
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
                                              std::shared_ptr<const ServedLanguageModel> model);

  // `owner`'s session, as the engine gave it. Once, before any Next.
  void Begin(const std::string& owner, SessionArchive archive);
  // The next part; nothing behind the seal.
  absl::StatusOr<std::optional<SessionPart>> Next();

 private:
  SessionExport(std::string server, std::shared_ptr<const ServedLanguageModel> model, TransferBudget::Share share,
                SessionSealer sealer)
      : server_(std::move(server)), model_(std::move(model)), share_(std::move(share)), sealer_(std::move(sealer)) {}

  std::string server_;
  std::shared_ptr<const ServedLanguageModel> model_;
  TransferBudget::Share share_;
  SessionSealer sealer_;
  std::optional<ArchiveWriter> writer_;
  int64_t session_tokens_ = 0;
  bool header_given_ = false;
  bool sealed_ = false;
};

}  // namespace longshort
