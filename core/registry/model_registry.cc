#include "core/registry/model_registry.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

void DrainModel(const ServedModel& served, absl::Time deadline) {
  std::visit([deadline](const auto& kind) { kind.engine->Drain(deadline); }, served.kind);
}

absl::Status NameModel(const absl::Status& status, const std::string& name, int64_t version) {
  return absl::Status(status.code(), absl::StrCat("model ", name, " version ", version, ": ", status.message()));
}

constexpr auto kAppendKey = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); };

}  // namespace

ModelRegistry::ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory,
                             std::unique_ptr<RetiredModels> retired)
    : repository_(std::move(repository)),
      loader_(std::move(loader)),
      engine_factory_(std::move(engine_factory)),
      retired_(std::move(retired)) {}

absl::StatusOr<std::unique_ptr<ModelRegistry>> ModelRegistry::Load(const std::string& repository, Loader loader,
                                                                   EngineFactory engine_factory) {
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<RetiredModels> retired, RetiredModels::Create());
  std::unique_ptr<ModelRegistry> registry(
      new ModelRegistry(repository, std::move(loader), std::move(engine_factory), std::move(retired)));
  registry->skipped_ = listing.skipped;
  if (listing.versions.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no model in ", repository, listing.skipped.empty() ? "" : "; ",
                                            absl::StrJoin(listing.skipped, "; ")));
  }
  const std::lock_guard loading(registry->loading_);
  for (const auto& [name, versions] : listing.versions) {
    LS_RETURN_IF_ERROR(registry->LoadFrom(name, *versions.rbegin()).status());
  }
  return registry;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelRegistry::Find(std::string_view name, int64_t version) const {
  const std::lock_guard lock(mutex_);
  if (models_.empty()) return absl::NotFoundError("no model is loaded");
  if (name.empty() && models_.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model must be named; there are: ", absl::StrJoin(models_, ", ", kAppendKey)));
  }
  const auto model = name.empty() ? models_.begin() : models_.find(name);
  if (model == models_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no model ", std::string(name),
                                            "; there are: ", absl::StrJoin(models_, ", ", kAppendKey)));
  }
  const auto& versions = model->second;
  if (version == 0) return versions.rbegin()->second;
  const auto found = versions.find(version);
  if (found == versions.end()) {
    return absl::NotFoundError(absl::StrCat("model ", model->first, " has no version ", version,
                                            "; there are: ", absl::StrJoin(versions, ", ", kAppendKey)));
  }
  return found->second;
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> list;
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, served] : versions) list.push_back(served);
  }
  return list;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelRegistry::LoadVersion(const std::string& name, int64_t version) {
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository_));
  const auto on_disk = listing.versions.find(name);
  if (on_disk == listing.versions.end()) {
    return absl::NotFoundError(absl::StrCat("the repository has no model ", name));
  }
  if (version == 0) version = *on_disk->second.rbegin();
  if (on_disk->second.count(version) == 0) {
    return absl::NotFoundError(absl::StrCat("the repository has no version ", version, " of model ", name,
                                            "; there are: ", absl::StrJoin(on_disk->second, ", ")));
  }
  const std::lock_guard loading(loading_);
  if (LoadedVersions(name).count(version) == 0) LS_RETURN_IF_ERROR(LoadFrom(name, version).status());
  kept_.insert({name, version});
  unwanted_.erase({name, version});
  return Find(name, version);
}

absl::Status ModelRegistry::Unload(const std::string& name, int64_t version) {
  const std::lock_guard loading(loading_);
  LS_RETURN_IF_ERROR(Find(name, version).status());
  for (const int64_t loaded : LoadedVersions(name)) {
    if (version != 0 && loaded != version) continue;
    Retire(name, loaded);
    kept_.erase({name, loaded});
    unwanted_.insert({name, loaded});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RegistryEvent>> ModelRegistry::FollowRepository() {
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository_));
  const std::lock_guard loading(loading_);
  std::set<std::string> names;
  for (const auto& served : List()) names.insert(served->name);
  for (const auto& model : listing.versions) names.insert(model.first);
  std::vector<RegistryEvent> events;
  for (const std::string& name : names) {
    const auto on_disk = listing.versions.find(name);
    Follow(name, on_disk == listing.versions.end() ? std::set<int64_t>() : on_disk->second, events);
  }
  return events;
}

void ModelRegistry::Follow(const std::string& name, const std::set<int64_t>& on_disk,
                           std::vector<RegistryEvent>& events) {
  const int64_t newest = on_disk.empty() ? 0 : *on_disk.rbegin();
  const VersionId id(name, newest);
  if (newest > 0 && LoadedVersions(name).count(newest) == 0 && unwanted_.count(id) == 0) {
    const std::string signature = FolderSignature(VersionDirectory(repository_, name, newest));
    const auto failed = failed_.find(id);
    if (failed == failed_.end() || failed->second != signature) {
      const auto loaded = LoadFrom(name, newest);
      if (loaded.ok()) {
        failed_.erase(id);
        events.push_back({RegistryEvent::Kind::kLoaded, name, newest, absl::OkStatus()});
      } else {
        failed_[id] = signature;
        events.push_back({RegistryEvent::Kind::kFailed, name, newest, loaded.status()});
      }
    }
  }
  const bool newest_serves = LoadedVersions(name).count(newest) > 0;
  for (const int64_t loaded : LoadedVersions(name)) {
    const bool replaced = newest_serves && loaded < newest && kept_.count({name, loaded}) == 0;
    if (!replaced && on_disk.count(loaded) > 0) continue;
    Retire(name, loaded);
    kept_.erase({name, loaded});
    events.push_back({RegistryEvent::Kind::kUnloaded, name, loaded, absl::OkStatus()});
  }
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelRegistry::LoadFrom(const std::string& name, int64_t version) {
  absl::StatusOr<ServedModel> made = MakeServed(name, version);
  if (!made.ok()) return NameModel(made.status(), name, version);
  std::shared_ptr<ServedModel> served = retired_->Share(std::make_unique<ServedModel>(*std::move(made)));
  const std::lock_guard lock(mutex_);
  models_[name][version] = served;
  return served;
}

absl::StatusOr<ServedModel> ModelRegistry::MakeServed(const std::string& name, int64_t version) const {
  const absl::Time begin = absl::Now();
  LS_ASSIGN_OR_RETURN(LoadedModel loaded, loader_(VersionDirectory(repository_, name, version)));
  LS_ASSIGN_OR_RETURN(ServedModel::Kind kind, engine_factory_(name, version, std::move(loaded)));
  return ServedModel{.name = name, .version = version, .kind = std::move(kind), .load_duration = absl::Now() - begin};
}

bool ModelRegistry::Retire(const std::string& name, int64_t version) {
  std::shared_ptr<ServedModel> last;  // let go after the lock
  const std::lock_guard lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end() || model->second.count(version) == 0) return false;
  last = std::move(model->second[version]);
  model->second.erase(version);
  if (model->second.empty()) models_.erase(model);
  leaving_.erase(std::remove_if(leaving_.begin(), leaving_.end(), [](const auto& gone) { return gone.expired(); }),
                 leaving_.end());
  leaving_.emplace_back(last);
  return true;
}

std::set<int64_t> ModelRegistry::LoadedVersions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::set<int64_t> versions;
  if (const auto model = models_.find(name); model != models_.end()) {
    for (const auto& version : model->second) versions.insert(version.first);
  }
  return versions;
}

void ModelRegistry::Drain(absl::Time deadline) {
  std::vector<std::shared_ptr<ServedModel>> all = List();
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<ServedModel>& leaving : leaving_) {
      if (std::shared_ptr<ServedModel> served = leaving.lock(); served != nullptr) all.push_back(std::move(served));
    }
  }
  std::vector<std::thread> drains;
  for (const std::shared_ptr<ServedModel>& served : all) {
    try {
      drains.emplace_back([served, deadline] { DrainModel(*served, deadline); });
    } catch (const std::system_error&) {  // no thread to be had: then one after the other
      DrainModel(*served, deadline);
    }
  }
  for (std::thread& drain : drains) drain.join();
}

}  // namespace longshort
