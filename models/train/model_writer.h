// Writes a trained model as a model directory (weights/model_directory.h), with the settings of the run that made it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/train/parameters.h"

namespace longshort::models {

// The settings and data that determine a run, by name. A run continues from its checkpoint, and replaces its model,
// only if they are the same. The number of steps and the time limit are not among them: they may change. So may the
// number of shards, which is kept to say so.
using RunSettings = std::map<std::string, std::string>;

// Adds the fields of a config.json ("layers", "preprocessing.crop_height").
void AddConfig(const std::string& json, RunSettings& settings);

// One line per setting, and the reverse.
std::string SettingsText(const RunSettings& settings);
RunSettings ParseSettings(const std::string& text);

inline constexpr char kShardsSetting[] = "--shards";

// The settings that differ, for a message: "batch is 8 there and 16 here". "" if none does. kShardsSetting may differ.
std::string DifferenceOf(const RunSettings& there, const RunSettings& here);

// A file of the model directory other than model.safetensors.
struct ModelFile {
  std::string name;  // "config.json"
  std::string content;
};

// Checks whether WriteModelDirectory will probably be able to write `directory`. Call it before a long run.
// `checkpoint` is the run's checkpoint file, "" if none.
// Errors: INVALID_ARGUMENT naming --out and the obstacle, for example files that do not belong to a model.
absl::Status CheckModelDirectory(const std::string& directory, const std::string& checkpoint);

// Writes `directory` with model.safetensors and `files`. The directory is written under another name and then renamed,
// so that readers never see a part of it. An existing model is replaced. `metadata` is stored with the weights. Tensors
// named in `exact` are stored in float32, the others in float16. Errors: OUT_OF_RANGE if a stored weight is not finite;
// FAILED_PRECONDITION, naming the folder that the model was written to, if that cannot be renamed to `directory`; those
// of the file system.
absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files,
                                 const std::map<std::string, std::string>& metadata = {});

// The metadata by which CheckReplacesOwnModel recognises a run's model.safetensors.
std::map<std::string, std::string> MetadataOfRun(const RunSettings& settings);

// Errors: FAILED_PRECONDITION naming --out, --replace and the settings that differ if `directory` has a model that a
// run with these settings did not write.
absl::Status CheckReplacesOwnModel(const std::string& directory, const RunSettings& settings);

}  // namespace longshort::models
