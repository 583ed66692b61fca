// The fields of the bodies of the protocol's REST form.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "base/strict_json.h"
#include "server/fronts/json/json_schema.h"

namespace longshort::server {

enum class RestBody { kInferRequest, kInput, kRequestedOutput, kIndexRequest, kLoadRequest };

// Errors: INVALID_ARGUMENT for what is no object, or has a field that such a body does not have.
absl::Status CheckFields(const JsonView& object, RestBody body);

// The bodies of requests, and of answers that are no messages.
const std::vector<NamedSchema>& RestSchemas();

}  // namespace longshort::server
