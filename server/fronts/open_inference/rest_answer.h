// Writes inference answers in the protocol's REST form: JSON, and behind it the binary data of outputs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/fronts/open_inference/rest_request.h"

namespace longshort::server {

struct RestAnswer {
  std::string body;
  // The length of the JSON; nullopt if the body has no binary data.
  std::optional<size_t> json_bytes;
};

// REQUIRES: `answer` has raw contents. Errors: INVALID_ARGUMENT for contents that JSON cannot have and that are not
// requested as binary data; INTERNAL.
absl::StatusOr<RestAnswer> WriteRestAnswer(const inference::ModelInferResponse& answer, const BinaryOutputs& binary);

}  // namespace longshort::server
