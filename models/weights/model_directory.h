// A model directory on disk: <repository>/<model>/<version>/ with config.json, model.safetensors and, optionally,
// vocabulary.txt or tokenizer.json, and labels.txt.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

// The content of the directory. Only loading the model checks that the files fit together.
struct ModelDirectory {
  std::string path;
  std::string config_text;                     // config.json
  std::optional<std::string> vocabulary_text;  // vocabulary.txt; absent if the model is served with ids only
  std::optional<std::string> tokenizer_text;   // tokenizer.json; absent if there is none
  std::optional<std::string> labels_text;      // labels.txt; absent if the classes have no names
  SafetensorsFile weights;                     // model.safetensors
  // Hex SHA-256 over name, length and content of all files (models/model_weights.h). Two directories have the same
  // fingerprint if and only if they contain the same model.
  std::string fingerprint;

  std::string config_path() const { return path + "/config.json"; }
  std::string vocabulary_path() const { return path + "/vocabulary.txt"; }
  std::string labels_path() const { return path + "/labels.txt"; }
};

// Opens the directory and reads all files once, for the fingerprint. Calls `check` before it reads the tensors, when
// the fingerprint is not yet set. Errors: NOT_FOUND etc. for a missing file; INVALID_ARGUMENT for a config.json over 1
// MiB, a vocabulary.txt, tokenizer.json or labels.txt over 64 MiB, or a broken model.safetensors; UNAVAILABLE for a
// file that cannot be read or is modified during reading; those of `check`; CANCELLED if `stop_requested` returns true.
// All except the last two name the file.
absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path,
                                                  const std::function<absl::Status(const ModelDirectory&)>& check = {},
                                                  const std::function<bool()>& stop_requested = {});

// Parses labels.txt. `name` is the file's name in errors. The last line may end without a newline.
// Errors: INVALID_ARGUMENT if the number of lines is not `classes`, or if a line is empty or not UTF-8.
absl::StatusOr<std::vector<std::string>> ParseLabels(std::string_view text, int64_t classes, const std::string& name);

}  // namespace longshort::models
