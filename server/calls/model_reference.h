// How a call names a model.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/calls/call_names.h"

namespace longshort {

struct ModelReference {
  // May be empty where exactly one model is served.
  std::string name;
  // 0 takes the newest.
  int64_t version = 0;
};

// Errors: INVALID_ARGUMENT for what can name no model. Messages and logs repeat the name, so it has a limit.
absl::Status CheckModelReference(const ModelReference& reference, const CallNames& names);

}  // namespace longshort
