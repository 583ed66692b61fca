// Writes what was trained as a model directory (weights/model_directory.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/train/named_parameter.h"

namespace longshort {

// A file of the directory beside model.safetensors.
struct ModelFile {
  std::string name;  // "config.json"
  std::string content;
};

// Writes model.safetensors and `files` into `directory`, made if it is not there. Tensors are stored in float16, those
// that `exact` names in float32. Errors: the file system's.
absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files);

}  // namespace longshort
