// Which sessions a server has.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/client.h"

namespace longshort {

// A session with its model, name and version.
struct SessionOfModel {
  v1::ModelSelector model;
  v1::ListedSession session;

  // "enwiki/1".
  std::string model_name() const;
};

// The sessions of the model; of all language models that the server has if it is not named. Those of all clients, or
// the caller's own. A session that versions of a model share comes once. Errors: those of the calls.
absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners);

// A table for people.
void WriteSessions(const std::vector<SessionOfModel>& sessions, std::ostream& output);

}  // namespace longshort
