#include "core/registry/model_registry.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace longshort::core {
namespace {

void DrainModel(const ServedModel& served, absl::Time deadline) {
  std::visit([deadline](const auto& kind) { kind.engine->Drain(deadline); }, served.kind);
}

absl::Status NameModel(const absl::Status& status, const std::string& name, int64_t version) {
  return absl::Status(status.code(), absl::StrCat("model ", name, " version ", version, ": ", status.message()));
}

// gRPC limits a status message to some thousand bytes.
constexpr size_t kMaxNames = 20;

template <typename Names, typename Append>
std::string ThereAre(const Names& names, const Append& append) {
  const size_t named = std::min(names.size(), kMaxNames);
  return absl::StrCat("; there are: ", absl::StrJoin(names.begin(), std::next(names.begin(), named), ", ", append),
                      named < names.size() ? absl::StrCat(" and ", names.size() - named, " more") : "");
}

absl::Status NoModelIn(const std::string& repository, const std::set<std::string>& skipped) {
  return absl::NotFoundError(
      absl::StrCat("there is no model in ", repository, skipped.empty() ? "" : "; ", absl::StrJoin(skipped, "; ")));
}

constexpr auto kAppendKey = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first); };

}  // namespace

ModelRegistry::ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory, PolicyReader policies,
                             std::unique_ptr<RetiredModels> retired)
    : repository_(std::move(repository)),
      loader_(std::move(loader)),
      engine_factory_(std::move(engine_factory)),
      policies_(std::move(policies)),
      retired_(std::move(retired)) {}

absl::StatusOr<std::unique_ptr<ModelRegistry>> ModelRegistry::Load(const std::string& repository, Loader loader,
                                                                   EngineFactory engine_factory, PolicyReader policies,
                                                                   bool strict) {
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<RetiredModels> retired, RetiredModels::Create());
  std::unique_ptr<ModelRegistry> registry(new ModelRegistry(repository, std::move(loader), std::move(engine_factory),
                                                            std::move(policies), std::move(retired)));
  const MutexLock loading(registry->loading_);
  registry->skipped_ = listing.skipped;
  const auto ignore = [](const RegistryEvent&) {};  // as skipped() and failures() return it
  for (const auto& [name, reason] : listing.unreadable) {
    registry->skipped_.insert(reason);
    registry->Fail({name, 0}, reason, absl::UnavailableError(reason), ignore);  // it is in skipped()
  }
  if (listing.versions.empty()) return NoModelIn(repository, registry->skipped_);
  registry->LookAt(listing);
  for (auto& looked : registry->looks_) looked.second.settled = true;  // no look before to compare with
  absl::Status stopped, first_failure;
  for (const auto& [name, versions] : listing.versions) {
    registry->FollowPolicy(name, versions, [&](const RegistryEvent& event) {
      if (event.kind == RegistryEvent::Kind::kStopped) stopped = event.status;
      if (event.kind == RegistryEvent::Kind::kFailed) first_failure.Update(event.status);
    });
    LS_RETURN_IF_ERROR(stopped);
    if (strict) LS_RETURN_IF_ERROR(first_failure);
  }
  if (registry->List().empty()) return first_failure;
  return registry;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelRegistry::Find(std::string_view name, int64_t version) const {
  const MutexLock lock(mutex_);
  if (models_.empty()) return absl::NotFoundError("no model is loaded");
  if (name.empty() && models_.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("a model must be named", ThereAre(models_, kAppendKey)));
  }
  const auto model = name.empty() ? models_.begin() : models_.find(name);
  if (model == models_.end()) {
    LS_RETURN_IF_ERROR(CheckNotFailed(name, version));
    return absl::NotFoundError(absl::StrCat("there is no model ", std::string(name), ThereAre(models_, kAppendKey)));
  }
  const auto& versions = model->second;
  if (version == 0) return versions.rbegin()->second;
  const auto found = versions.find(version);
  if (found == versions.end()) {
    LS_RETURN_IF_ERROR(CheckNotFailed(model->first, version));
    return absl::NotFoundError(
        absl::StrCat("model ", model->first, " has no version ", version, ThereAre(versions, kAppendKey)));
  }
  return found->second;
}

absl::Status ModelRegistry::WithoutPath(const absl::Status& status) const {
  const std::string root = (std::filesystem::path(repository_) / "").string();  // ends with a slash
  constexpr char kItself[] = "of the repository:";
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(),
                                                         {{absl::StrCat(root, ":"), kItself},
                                                          {absl::StrCat(root.substr(0, root.size() - 1), ":"), kItself},
                                                          {root, ""}}));
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::List() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> list;
  for (const auto& [name, versions] : models_) {
    for (const auto& [version, served] : versions) list.push_back(served);
  }
  return list;
}

absl::StatusOr<LoadedVersion> ModelRegistry::LoadVersion(const std::string& name, int64_t version, Report report) {
  const MutexLock loading(loading_);
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository_));
  if (const auto unreadable = listing.unreadable.find(name); unreadable != listing.unreadable.end()) {
    return absl::UnavailableError(unreadable->second);
  }
  const auto on_disk = listing.versions.find(name);
  if (on_disk == listing.versions.end()) {
    return absl::NotFoundError(absl::StrCat("the repository has no model ", name));
  }
  if (version == 0) version = *on_disk->second.rbegin();
  if (on_disk->second.count(version) == 0) {
    return absl::NotFoundError(absl::StrCat("the repository has no version ", version, " of model ", name,
                                            ThereAre(on_disk->second, absl::AlphaNumFormatter())));
  }
  const VersionId id(name, version);
  const Signature signature = SignatureOf(id);
  const absl::StatusOr<LoadOutcome> outcome = LoadFrom(id, signature, report);
  if (!outcome.ok()) {
    if (absl::IsCancelled(outcome.status())) return outcome.status();
    Forget(id);  // each attempt of a client is reported
    Fail(id, signature.Text(), outcome.status(), report);
    return outcome.status();
  }
  Forget(id);
  kept_.insert(id);
  unwanted_.erase(id);
  LS_ASSIGN_OR_RETURN(std::shared_ptr<ServedModel> served, Find(name, version));
  return LoadedVersion{.model = std::move(served), .outcome = *outcome};
}

absl::Status ModelRegistry::Unload(const std::string& name, int64_t version) {
  const MutexLock loading(loading_);
  LS_RETURN_IF_ERROR(Find(name, version).status());
  for (const int64_t loaded : LoadedVersions(name)) {
    if (version != 0 && loaded != version) continue;
    Remove(name, loaded);
    kept_.erase({name, loaded});
    unwanted_.insert({name, loaded});
  }
  return absl::OkStatus();
}

absl::Status ModelRegistry::FollowRepository(Report report) {
  const MutexLock loading(loading_);
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository_));
  if (listing.versions.empty() && listing.unreadable.empty()) return NoModelIn(repository_, listing.skipped);
  for (const std::string& reason : listing.skipped) {
    if (skipped_.insert(reason).second) report({RegistryEvent::Kind::kSkipped, "", 0, absl::NotFoundError(reason)});
  }
  std::set<std::string> names;
  for (const auto& served : List()) names.insert(served->name);
  for (const auto& model : listing.versions) names.insert(model.first);
  for (const auto& [name, reason] : listing.unreadable) {
    names.erase(name);
    Fail({name, 0}, reason, absl::UnavailableError(reason), report);
  }
  LookAt(listing);
  for (const std::string& name : names) {
    const auto on_disk = listing.versions.find(name);
    Follow(name, on_disk == listing.versions.end() ? std::set<int64_t>() : on_disk->second, report);
  }
  return absl::OkStatus();
}

void ModelRegistry::LookAt(const RepositoryListing& listing) {
  std::map<VersionId, Look> looks;
  for (const auto& served : List()) {
    if (listing.unreadable.count(served->name) == 0) looks[{served->name, served->version}] = Look();
  }
  for (const auto& [name, versions] : listing.versions) {
    for (const int64_t version : versions) looks[{name, version}].signature = SignatureOf({name, version});
  }
  for (auto& [id, look] : looks) {
    const auto before = looks_.find(id);
    look.settled = before != looks_.end() && before->second.signature == look.signature;
  }
  looks_ = std::move(looks);
}

void ModelRegistry::Follow(const std::string& name, const std::set<int64_t>& on_disk, Report report) {
  for (const int64_t loaded : LoadedVersions(name)) {
    // Another folder may be about to take the place of one that has vanished.
    if (on_disk.count(loaded) == 0 && !looks_[{name, loaded}].settled) return;
  }
  const std::optional<std::set<int64_t>> chosen = FollowPolicy(name, on_disk, report);
  for (const int64_t loaded : LoadedVersions(name)) {
    const bool kept = kept_.count({name, loaded}) > 0;
    const bool replaced = !kept && chosen.has_value() && chosen->count(loaded) == 0;
    if (!replaced && on_disk.count(loaded) > 0) {
      if (kept) FollowVersion(name, loaded, report);
      continue;
    }
    Remove(name, loaded);
    kept_.erase({name, loaded});
    report({RegistryEvent::Kind::kUnloaded, name, loaded, absl::OkStatus()});
  }
}

std::optional<std::set<int64_t>> ModelRegistry::FollowPolicy(const std::string& name, const std::set<int64_t>& on_disk,
                                                             Report report) {
  if (on_disk.empty()) return std::nullopt;
  const std::string signature =
      absl::StrCat(FileSignature(ServingFile(repository_, name)), " of ", absl::StrJoin(on_disk, " "));
  const absl::StatusOr<VersionPolicy> policy = ReadPolicy(name, on_disk);
  if (!policy.ok()) {
    Fail({name, 0}, signature, policy.status(), report);
    return std::nullopt;
  }
  Forget({name, 0});
  std::set<int64_t> usable = on_disk;
  for (;;) {
    std::set<int64_t> chosen = policy->Choose(usable);
    if (chosen.empty()) return std::nullopt;
    const std::set<int64_t> loaded = LoadedVersions(name);
    const bool waits =
        std::any_of(chosen.begin(), chosen.end(), [&](int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_) {
          const VersionId id(name, version);
          return !looks_[id].settled && loaded.count(version) == 0 && unwanted_.count(id) == 0;
        });
    if (waits) return std::nullopt;
    const auto unusable = std::find_if(
        chosen.rbegin(), chosen.rend(),
        [&](int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_) { return !FollowVersion(name, version, report); });
    if (unusable == chosen.rend()) return chosen;
    usable.erase(*unusable);
  }
}

bool ModelRegistry::FollowVersion(const std::string& name, int64_t version, Report report) {
  const VersionId id(name, version);
  if (unwanted_.count(id) > 0) return true;
  const Look& look = looks_[id];
  const bool serves = LoadedVersions(name).count(version) > 0;
  if (!look.settled || (serves && served_[id] == look.signature)) return serves;
  if (FailsAgain(id, look.signature)) return serves;
  const absl::StatusOr<LoadOutcome> loaded = LoadFrom(id, look.signature, report);
  if (absl::IsCancelled(loaded.status())) {
    report({RegistryEvent::Kind::kStopped, name, version, loaded.status()});
    return serves;
  }
  if (!loaded.ok()) {
    Fail(id, look.signature.Text(), loaded.status(), report);
    return serves;
  }
  Forget(id);
  return true;
}

std::map<std::pair<std::string, int64_t>, absl::Status> ModelRegistry::failures() const {
  const MutexLock lock(mutex_);
  std::map<VersionId, absl::Status> failures;
  for (const auto& [id, failure] : failed_) failures.emplace(id, failure.status);
  return failures;
}

void ModelRegistry::Fail(const VersionId& id, const std::string& signature, const absl::Status& status, Report report) {
  {
    const MutexLock lock(mutex_);
    Failure& failure = failed_[id];
    failure.lasts = !absl::IsUnavailable(status);
    failure.status = status;
    if (std::exchange(failure.signature, signature) == signature) return;
  }
  report({RegistryEvent::Kind::kFailed, id.first, id.second, status});
}

void ModelRegistry::Forget(const VersionId& id) {
  const MutexLock lock(mutex_);
  failed_.erase(id);
}

bool ModelRegistry::FailsAgain(const VersionId& id, const Signature& signature) const {
  const MutexLock lock(mutex_);
  const auto failed = failed_.find(id);
  return failed != failed_.end() && failed->second.lasts && failed->second.signature == signature.Text();
}

absl::Status ModelRegistry::CheckNotFailed(std::string_view name, int64_t version) const {
  for (const auto& [id, failure] : failed_) {
    if (id.first != name || (version != 0 && id.second != 0 && id.second != version)) continue;
    return WithoutPath(
        absl::NotFoundError(absl::StrCat("not served, because it could not be loaded: ", failure.status.message())));
  }
  return absl::OkStatus();
}

absl::StatusOr<VersionPolicy> ModelRegistry::ReadPolicy(const std::string& name,
                                                        const std::set<int64_t>& on_disk) const {
  if (policies_ == nullptr) return VersionPolicy();
  absl::StatusOr<VersionPolicy> policy = policies_(name);
  if (!policy.ok()) {
    return absl::Status(policy.status().code(), absl::StrCat("model ", name, ": ", policy.status().message()));
  }
  if (policy->Choose(on_disk).empty()) {
    return absl::NotFoundError(absl::StrCat("model ", name, ": the repository has none of the versions that ",
                                            ServingFile(repository_, name), " wants",
                                            ThereAre(on_disk, absl::AlphaNumFormatter())));
  }
  return policy;
}

ModelRegistry::Signature ModelRegistry::SignatureOf(const VersionId& id) const {
  return {.files = absl::StrCat("files: ", VersionSignature(VersionDirectory(repository_, id.first, id.second))),
          .serving = FileSignature(ServingFile(repository_, id.first))};
}

absl::StatusOr<LoadOutcome> ModelRegistry::LoadFrom(const VersionId& id, const Signature& signature, Report report) {
  const auto& [name, version] = id;
  RegistryEvent event{RegistryEvent::Kind::kLoaded, name, version, absl::OkStatus()};
  std::string served_fingerprint;
  const bool reloads = LoadedVersions(name).count(version) > 0;
  if (reloads) {
    const Signature& served = served_[id];
    if (served == signature) return LoadOutcome::kUnchanged;
    const bool same_serving = served.serving == signature.serving;
    event.kind = RegistryEvent::Kind::kReloaded;
    event.changed = absl::StrCat(served.files == signature.files ? "" : "the model's files",
                                 served.files == signature.files || same_serving ? "" : " and ",
                                 same_serving ? "" : "serving.json");
    if (same_serving) {
      LS_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> now, Find(name, version));
      served_fingerprint = now->fingerprint();
    }
  }
  absl::StatusOr<ServedModel> made = MakeServed(id, served_fingerprint);
  const bool same_content = absl::IsAlreadyExists(made.status());
  if (!made.ok() && !same_content) return NameModel(made.status(), name, version);
  if (reloads && SignatureOf(id).files != signature.files) {
    return NameModel(absl::UnavailableError("its files changed while they were read; the version serves as before"),
                     name, version);
  }
  if (made.ok()) {
    Publish(*std::move(made));
  } else {
    event.kind = RegistryEvent::Kind::kUnchanged;
    event.changed.clear();
  }
  served_[id] = signature;
  report(event);
  if (same_content) return LoadOutcome::kUnchanged;
  return reloads ? LoadOutcome::kReloaded : LoadOutcome::kLoaded;
}

void ModelRegistry::Publish(ServedModel made) {
  std::shared_ptr<ServedModel> served = retired_->Share(std::make_unique<ServedModel>(std::move(made)));
  std::shared_ptr<ServedModel> replaced;  // released after the lock
  const MutexLock lock(mutex_);
  replaced = std::exchange(models_[served->name][served->version], served);
  if (replaced != nullptr) AddUnloaded(replaced);
}

absl::StatusOr<ServedModel> ModelRegistry::MakeServed(const VersionId& id,
                                                      const std::string& served_fingerprint) const {
  const auto& [name, version] = id;
  const absl::Time begin = MonotonicNow();
  LS_ASSIGN_OR_RETURN(models::LoadedModel loaded,
                      loader_(VersionDirectory(repository_, name, version), served_fingerprint));
  LS_ASSIGN_OR_RETURN(ServedModel::Kind kind, engine_factory_(name, version, std::move(loaded)));
  return ServedModel{
      .name = name, .version = version, .kind = std::move(kind), .load_duration = MonotonicNow() - begin};
}

bool ModelRegistry::Remove(const std::string& name, int64_t version) {
  served_.erase({name, version});
  std::shared_ptr<ServedModel> last;  // released after the lock
  const MutexLock lock(mutex_);
  failed_.erase({name, version});  // of a reload: it is no longer why the version is not served
  const auto model = models_.find(name);
  if (model == models_.end() || model->second.count(version) == 0) return false;
  last = std::move(model->second[version]);
  model->second.erase(version);
  if (model->second.empty()) models_.erase(model);
  AddUnloaded(last);
  return true;
}

void ModelRegistry::AddUnloaded(const std::shared_ptr<ServedModel>& served) {
  unloaded_.erase(std::remove_if(unloaded_.begin(), unloaded_.end(), [](const auto& gone) { return gone.expired(); }),
                  unloaded_.end());
  unloaded_.emplace_back(served);
}

std::set<int64_t> ModelRegistry::LoadedVersions(const std::string& name) const {
  const MutexLock lock(mutex_);
  std::set<int64_t> versions;
  if (const auto model = models_.find(name); model != models_.end()) {
    for (const auto& version : model->second) versions.insert(version.first);
  }
  return versions;
}

void ModelRegistry::Drain(absl::Time deadline) {
  std::vector<std::shared_ptr<ServedModel>> all = List();
  {
    const MutexLock lock(mutex_);
    for (const std::weak_ptr<ServedModel>& unloaded : unloaded_) {
      if (std::shared_ptr<ServedModel> served = unloaded.lock(); served != nullptr) all.push_back(std::move(served));
    }
  }
  std::vector<Thread> drains(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto drain = [&served = *all[i], deadline] { DrainModel(served, deadline); };
    // If no thread can be created, drain the models one after the other.
    if (!drains[i].Start("a thread that drains a model", drain).ok()) drain();
  }
}

}  // namespace longshort::core
