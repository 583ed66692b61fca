// Writes what was trained as a model directory (weights/model_directory.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/train/parameters.h"

namespace longshort::models {

// A file of the directory beside model.safetensors.
struct ModelFile {
  std::string name;  // "config.json"
  std::string content;
};

// Whether it is likely that WriteModelDirectory can write there: to be asked before a run of hours. `checkpoint` is the
// file that the run keeps, "" if none.
// Errors: INVALID_ARGUMENT naming --out and what is in the way, files that are no model's among it.
absl::Status CheckModelDirectory(const std::string& directory, const std::string& checkpoint);

// Makes `directory` of model.safetensors and `files`, beside its place and then renamed, so that nobody finds half of
// it; a model that was there is replaced. Tensors are stored in float16, those that `exact` names in float32.
// Errors: the file system's; OUT_OF_RANGE if a weight is not finite as it is stored; FAILED_PRECONDITION if the place
// cannot be taken, naming the folder beside it that the model was written to.
absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files);

}  // namespace longshort::models
