#include "models/train/model_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/load_options.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

namespace fs = std::filesystem;

// The canonical path of a model directory: without links, "..", or a slash at the end.
fs::path PlaceOf(const std::string& directory) {
  std::error_code unknown;
  const fs::path place = fs::weakly_canonical(fs::absolute(directory, unknown), unknown);
  return place.has_filename() ? place : place.parent_path();
}

bool IsInside(const fs::path& place, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), place.begin(), place.end()).first == directory.end();
}

bool IsMountPoint(const fs::path& directory) {
  struct stat own = {}, parent = {};
  return stat(directory.c_str(), &own) == 0 && stat((directory / "..").c_str(), &parent) == 0 &&
         (own.st_dev != parent.st_dev || own.st_ino == parent.st_ino);
}

// The reason why a model cannot replace this folder; "" if it can.
std::string WhyNotReplace(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) return "it exists and is not a folder";
  if (IsMountPoint(directory)) return "it is a mount point; name a folder in it";
  if (IsInside(fs::current_path(error), directory)) {
    return "it contains the current working directory; name a folder in it";
  }
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::find(kModelFiles.begin(), kModelFiles.end(), name) == kModelFiles.end()) {
      return "it contains files that are not a model's and would be lost";
    }
  }
  return error ? error.message() : "";
}

std::string WhyNotMake(const fs::path& place) {
  std::error_code unknown;
  if (fs::is_symlink(place, unknown)) return "it is a dangling symbolic link";
  if (fs::exists(place, unknown)) {
    if (std::string why = WhyNotReplace(place); !why.empty()) return why;
  }
  fs::path there = place.parent_path();  // the model is written next to its place
  while (!fs::exists(fs::symlink_status(there, unknown)) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, unknown)) return absl::StrCat(there.string(), " is not a folder");
  if (access(there.c_str(), W_OK | X_OK) != 0) return absl::StrCat(there.string(), ": ", std::strerror(errno));
  return "";
}

absl::Status WriteFiles(const fs::path& directory, const std::vector<NamedParameter>& parameters,
                        absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& parameter : parameters) {
    const bool is_exact = std::find(exact.begin(), exact.end(), parameter.name) != exact.end();
    values.push_back(parameter.value.detach().to(is_exact ? at::kFloat : at::kHalf).contiguous());
    if (!at::isfinite(values.back()).all().item<bool>()) {
      return absl::OutOfRangeError(absl::StrCat(
          "the weights ", parameter.name, " are not finite, or too large for ", is_exact ? "float32" : "float16",
          ": the training has diverged; train again with a lower --learning-rate"));
    }
    tensors.push_back(AsNamed(parameter.name, values.back()));
  }
  LS_RETURN_IF_ERROR(WriteSafetensors((directory / "model.safetensors").string(), tensors, metadata));
  for (const ModelFile& file : files) {
    LS_RETURN_IF_ERROR(WriteFileAtomically((directory / file.name).string(), {file.content}));
  }
  return absl::OkStatus();
}

// Renames `made` to `directory` and removes an existing `directory`. If the file system can swap the two, `directory`
// exists at every moment.
std::error_code Replace(const fs::path& directory, const fs::path& made) {
  std::error_code error, unknown;
  if (!fs::exists(directory, error)) {
    fs::rename(made, directory, error);
    return error;
  }
  fs::path old = made;
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, directory.c_str(), RENAME_EXCHANGE) != 0) {
    old += ".old";
    fs::rename(directory, old, error);
    if (!error) {
      fs::rename(made, directory, error);
      if (error) fs::rename(old, directory, unknown);
    }
  }
  if (!error) fs::remove_all(old, unknown);
  return error;
}

}  // namespace

absl::Status CheckModelDirectory(const std::string& directory, const std::string& checkpoint) {
  const fs::path place = PlaceOf(directory);
  std::string why = WhyNotMake(place);
  if (why.empty() && !checkpoint.empty()) {
    const fs::path file = PlaceOf(checkpoint);
    if (IsInside(file, place)) why = absl::StrCat("--checkpoint=", checkpoint, " is inside it");
    if (IsInside(place, file)) why = absl::StrCat("--checkpoint=", checkpoint, " is a part of its path");
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--out=", directory, " cannot be created: ", why));
}

absl::Status WriteModelDirectory(const std::string& directory, const std::vector<NamedParameter>& parameters,
                                 absl::Span<const std::string_view> exact, const std::vector<ModelFile>& files,
                                 const std::map<std::string, std::string>& metadata) {
  const fs::path place = PlaceOf(directory);
  const fs::path made = place.parent_path() / absl::StrCat(".model.partial.", absl::Hex(std::random_device{}()));
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (!error) fs::create_directory(made, error);
  if (error) return absl::UnavailableError(absl::StrCat(made.string(), ": cannot be created: ", error.message()));
  if (const absl::Status written = WriteFiles(made, parameters, exact, files, metadata); !written.ok()) {
    fs::remove_all(made, error);
    return written;
  }
  std::string why = WhyNotMake(place);
  if (why.empty()) {
    error = Replace(place, made);
    if (!error) return absl::OkStatus();
    why = error.message();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(directory, " cannot be created: ", why, "; the complete model is in ", made.string()));
}

std::map<std::string, std::string> MetadataOfRun(const RunSettings& settings) {
  return {{"settings", SettingsText(settings)}};
}

absl::Status CheckReplacesOwnModel(const std::string& directory, const RunSettings& settings) {
  const fs::path weights = PlaceOf(directory) / "model.safetensors";
  std::error_code unknown;
  if (!fs::exists(weights, unknown)) return absl::OkStatus();
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(weights.string());
  std::string why = "which this run did not write";
  if (file.ok() && file->metadata().contains("settings")) {
    why = DifferenceOf(ParseSettings(file->metadata().at("settings")), settings);
    if (why.empty()) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("--out=", directory, " has a model of another run: ", why,
                   "; name another folder, for example the next version, or give --replace to replace the model"));
}

void AddConfig(const std::string& json, RunSettings& settings) {
  const nlohmann::json fields = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!fields.is_object()) return;
  const nlohmann::json flat = fields.flatten();
  for (const auto& [path, value] : flat.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    settings[name] = value.dump();
  }
}

std::string SettingsText(const RunSettings& settings) {
  return absl::StrCat(absl::StrJoin(settings, "\n", absl::PairFormatter("=")), "\n");
}

RunSettings ParseSettings(const std::string& text) {
  RunSettings settings;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(line, absl::MaxSplits('=', 1));
    settings.insert(setting);
  }
  return settings;
}

std::string DifferenceOf(const RunSettings& there, const RunSettings& here) {
  RunSettings all = there;
  all.insert(here.begin(), here.end());
  std::vector<std::string> differences;
  for (const auto& [name, unused] : all) {
    const auto value = [&name = name](const RunSettings& settings) {
      const auto found = settings.find(name);
      return found == settings.end() ? "not set" : found->second;
    };
    const std::string old_value = value(there), new_value = value(here);
    if (old_value == new_value || name == kShardsSetting) continue;
    // A hash of data is long, and its start says as much.
    differences.push_back(
        absl::StrCat(name, " is ", old_value.substr(0, 40), " there and ", new_value.substr(0, 40), " here"));
  }
  return absl::StrJoin(differences, ", ");
}

}  // namespace longshort::models
