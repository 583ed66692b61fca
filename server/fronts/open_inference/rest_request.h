// Reads inference requests of the protocol's REST form: JSON, and behind it the binary data of inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/memory_meter.h"
#include "open_inference/v2/service.pb.h"

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

}  // namespace longshort::server
