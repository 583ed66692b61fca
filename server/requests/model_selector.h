// How a call names a model.
#pragma once

#include "absl/status/status.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// Errors: INVALID_ARGUMENT for what can name no model. Messages and logs repeat the name, so it has a limit.
absl::Status CheckModelSelector(const v1::ModelSelector& selector);

}  // namespace longshort
