#include "core/registry/model_registry.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/text/utf8_stream.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

namespace fs = std::filesystem;

// The names of the folders in `folder` that do not begin with a dot, sorted.
absl::StatusOr<std::set<std::string>> FoldersIn(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code not_a_folder;  // a broken link is none
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && entry->is_directory(not_a_folder)) names.insert(name);
  }
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  return names;
}

// The newest version in a model's folder; 0 if there is none. Folders that are not named by a whole number from 1 on
// are no versions.
absl::StatusOr<int64_t> NewestVersion(const fs::path& model_folder) {
  LS_ASSIGN_OR_RETURN(const std::set<std::string> names, FoldersIn(model_folder));
  int64_t newest = 0;
  for (const std::string& name : names) {
    int64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && absl::StrCat(version) == name) newest = std::max(newest, version);
  }
  return newest;
}

absl::StatusOr<std::shared_ptr<ServedModel>> LoadVersion(const fs::path& model_folder, const std::string& name,
                                                         int64_t version, const ModelRegistry::Loader& loader,
                                                         const ModelRegistry::EngineFactory& engine_factory) {
  const absl::Time begin = absl::Now();
  LS_ASSIGN_OR_RETURN(LoadedModel loaded, loader((model_folder / absl::StrCat(version)).string()));
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->version = version;
  LS_ASSIGN_OR_RETURN(served->kind, engine_factory(name, version, std::move(loaded)));
  served->load_duration = absl::Now() - begin;
  return served;
}

void DrainModel(const ServedModel& served, absl::Time deadline) {
  std::visit([deadline](const auto& kind) { kind.engine->Drain(deadline); }, served.kind);
}

bool IsUtf8(const std::string& text) {
  Utf8Stream stream;
  return stream.Append(text) + stream.Flush() == text;
}

absl::Status NameModel(const absl::Status& status, const std::string& name, int64_t version) {
  return absl::Status(status.code(), absl::StrCat("model ", name, " version ", version, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRegistry>> ModelRegistry::Load(const std::string& repository, const Loader& loader,
                                                                   const EngineFactory& engine_factory) {
  LS_ASSIGN_OR_RETURN(const std::set<std::string> names, FoldersIn(repository));
  auto registry = std::make_unique<ModelRegistry>();
  for (const std::string& name : names) {
    const fs::path model_folder = fs::path(repository) / name;
    if (!IsUtf8(name)) {
      registry->skipped_.push_back(absl::StrCat(model_folder.string(), ": the name is not UTF-8"));
      continue;
    }
    const absl::StatusOr<int64_t> newest = NewestVersion(model_folder);
    if (!newest.ok() || *newest == 0) {
      registry->skipped_.push_back(newest.ok() ? absl::StrCat(model_folder.string(), ": no folder named 1, 2, ...")
                                               : std::string(newest.status().message()));
      continue;
    }
    const int64_t version = *newest;
    auto served = LoadVersion(model_folder, name, version, loader, engine_factory);
    if (!served.ok()) return NameModel(served.status(), name, version);
    registry->models_[name][version] = *std::move(served);
  }
  if (registry->models_.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no model in ", repository, registry->skipped_.empty() ? "" : "; ",
                                            absl::StrJoin(registry->skipped_, "; ")));
  }
  return registry;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelRegistry::Find(std::string_view name, int64_t version) const {
  const auto key_of = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); };
  if (name.empty() && models_.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model must be named; there are: ", absl::StrJoin(models_, ", ", key_of)));
  }
  const auto model = name.empty() ? models_.begin() : models_.find(name);
  if (model == models_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no model ", std::string(name), "; there are: ", absl::StrJoin(models_, ", ", key_of)));
  }
  const auto& versions = model->second;
  if (version == 0) return versions.rbegin()->second;
  const auto found = versions.find(version);
  if (found == versions.end()) {
    return absl::NotFoundError(absl::StrCat("model ", model->first, " has no version ", version,
                                            "; there are: ", absl::StrJoin(versions, ", ", key_of)));
  }
  return found->second;
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::List() const {
  std::vector<std::shared_ptr<ServedModel>> list;
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, served] : versions) list.push_back(served);
  }
  return list;
}

void ModelRegistry::Drain(absl::Time deadline) {
  std::vector<std::thread> drains;
  for (const std::shared_ptr<ServedModel>& served : List()) {
    try {
      drains.emplace_back([served, deadline] { DrainModel(*served, deadline); });
    } catch (const std::system_error&) {  // no thread to be had: then one after the other
      DrainModel(*served, deadline);
    }
  }
  for (std::thread& drain : drains) drain.join();
}

}  // namespace longshort
