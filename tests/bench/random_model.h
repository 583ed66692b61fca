// Model directories with weights by formula, which take as long as trained ones.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace longshort {

// Writes what a model of this config.json is made of, of any architecture, into a directory that is there; the same
// every time. Errors: INVALID_ARGUMENT naming what is wrong in `config`; those of WriteSafetensors.
absl::Status WriteRandomModel(const std::string& config, const std::string& directory);

}  // namespace longshort
