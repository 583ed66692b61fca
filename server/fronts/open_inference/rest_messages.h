// Requests and answers of inference in the protocol's REST form: JSON, and behind it the binary data of inputs or
// outputs; and the fields of all bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "base/strict_json.h"
#include "open_inference/v2/service.pb.h"
#include "server/fronts/json/json_schema.h"

namespace longshort::server {

// Which outputs the answer has as binary data behind its JSON.
struct BinaryOutputs {
  bool by_default = false;
  std::map<std::string, bool> by_name;

  bool Has(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? by_default : found->second;
  }
};

// Reads a request whose inputs have together at most `max_bytes`. `request` has the model's name and version already,
// and gets raw contents for all inputs. Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED for larger inputs; the meter's.
absl::Status ReadRestRequest(std::string_view json, std::string_view binary, int64_t max_bytes, MemoryMeter& meter,
                             inference::ModelInferRequest& request, BinaryOutputs& outputs);

struct RestAnswer {
  std::string body;
  // The length of the JSON; nullopt if the body has no binary data.
  std::optional<size_t> json_bytes;
};

// REQUIRES: `answer` has raw contents. Errors: INVALID_ARGUMENT for contents that JSON cannot have and that are not
// requested as binary data; INTERNAL.
absl::StatusOr<RestAnswer> WriteRestAnswer(const inference::ModelInferResponse& answer, const BinaryOutputs& binary);

enum class RestBody { kInferRequest, kInput, kRequestedOutput, kIndexRequest, kLoadRequest };

// Errors: INVALID_ARGUMENT for what is no object, or has a field that such a body does not have.
absl::Status CheckFields(const JsonView& object, RestBody body);

// The bodies of requests, and of answers that are no messages.
const std::vector<NamedSchema>& RestSchemas();

}  // namespace longshort::server
