// A model directory on disk: <repository>/<model>/<version>/{config.json, model.safetensors} and, where
// the model has them, vocabulary.txt and labels.txt.
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

// What is in the directory. Nothing here says that the files fit together; loading the model does.
struct ModelDirectory {
  std::string path;
  std::string config_text;                     // config.json
  std::optional<std::string> vocabulary_text;  // vocabulary.txt, which a model served by ids alone does without
  std::optional<std::string> labels_text;      // labels.txt, which a classifier with unnamed classes does without
  SafetensorsFile weights;                     // model.safetensors
  // Hex SHA-256 over name, length and content of each of the files: two directories have one fingerprint exactly if
  // they hold the same model.
  std::string fingerprint;

  std::string config_path() const { return path + "/config.json"; }
  std::string vocabulary_path() const { return path + "/vocabulary.txt"; }
  std::string labels_path() const { return path + "/labels.txt"; }
};

// Opens the directory and reads all of it once, for the fingerprint.
// Errors: NOT_FOUND and the like for a missing file; INVALID_ARGUMENT for a config.json over 1 MiB, a vocabulary.txt
// or labels.txt over 64 MiB, or a broken model.safetensors; UNAVAILABLE for a file that cannot be read, or is written
// to meanwhile; what `check` says, which is asked before the tensors are read and the fingerprint is known; CANCELLED
// once `stop_requested` says so. All but the last two name the file.
absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path,
                                                  const std::function<absl::Status(const ModelDirectory&)>& check = {},
                                                  const std::function<bool()>& stop_requested = {});

// `name` stands for the file in errors; the last line may end without a newline.
// Errors: INVALID_ARGUMENT if there are not `classes` lines, or one is empty, or not UTF-8.
absl::StatusOr<std::vector<std::string>> ParseLabels(std::string_view text, int64_t classes, const std::string& name);

}  // namespace longshort::models
