// Where models run, as --devices and a model's serving.json say it.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace longshort {

// Errors: INVALID_ARGUMENT that completes the sentence "devices is 'value'; ...".
absl::Status CheckDevices(const std::string& devices);

}  // namespace longshort
