#include "core/registry/model_registry.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/freed_memory.h"
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

template <typename Names>
std::string ThereAre(const Names& names) {
  const size_t named = std::min(names.size(), kMaxNames);
  return absl::StrCat("; there are: ", absl::StrJoin(names.begin(), std::next(names.begin(), named), ", "),
                      named < names.size() ? absl::StrCat(" and ", names.size() - named, " more") : "");
}

absl::Status NoModelIn(const std::string& repository, const std::set<std::string>& skipped) {
  return absl::NotFoundError(
      absl::StrCat("there is no model in ", repository, skipped.empty() ? "" : "; ", absl::StrJoin(skipped, "; ")));
}

constexpr auto kNoReport = [](const RegistryEvent&) {};

}  // namespace

ModelRegistry::ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory, PolicyReader policies)
    : repository_(std::move(repository)),
      loader_(std::move(loader)),
      engine_factory_(std::move(engine_factory)),
      policies_(std::move(policies)) {}

ModelRegistry::~ModelRegistry() {
  versions_.clear();  // hands the models that serve to the thread
  destroyer_->Stop();
}

absl::StatusOr<std::unique_ptr<ModelRegistry>> ModelRegistry::Load(const std::string& repository, Loader loader,
                                                                   EngineFactory engine_factory, PolicyReader policies,
                                                                   bool strict) {
  LS_ASSIGN_OR_RETURN(const RepositoryListing listing, ListRepository(repository));
  std::unique_ptr<ModelRegistry> registry(
      new ModelRegistry(repository, std::move(loader), std::move(engine_factory), std::move(policies)));
  LS_RETURN_IF_ERROR(registry->destroyer_->Start("the registry's thread"));
  const MutexLock loading(registry->loading_);
  registry->skipped_ = listing.skipped;
  for (const auto& [name, reason] : listing.unreadable) {
    registry->skipped_.insert(reason);
    registry->Fail({name, 0}, reason, absl::UnavailableError(reason), kNoReport);  // it is in skipped()
  }
  if (listing.versions.empty()) return NoModelIn(repository, registry->skipped_);
  registry->LookAt(listing);
  {
    const MutexLock lock(registry->mutex_);
    for (auto& entry : registry->versions_) entry.second.settled = true;  // no look before to compare with
  }
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
  std::string model(name);
  if (std::shared_ptr<ServedModel> served = Serving(model, version); served != nullptr) return served;
  std::set<std::string> models;
  std::set<int64_t> versions;
  for (const auto& [id, known] : versions_) {
    if (known.served == nullptr) continue;
    models.insert(id.first);
    if (name.empty() || id.first == name) versions.insert(id.second);
  }
  if (models.empty()) return absl::NotFoundError("no model is loaded");
  if (name.empty()) {
    if (models.size() > 1) return absl::InvalidArgumentError(absl::StrCat("a model must be named", ThereAre(models)));
    model = *models.begin();
    if (std::shared_ptr<ServedModel> served = Serving(model, version); served != nullptr) return served;
  }
  LS_RETURN_IF_ERROR(CheckNotFailed(model, version));
  if (versions.empty()) return absl::NotFoundError(absl::StrCat("there is no model ", model, ThereAre(models)));
  return absl::NotFoundError(absl::StrCat("model ", model, " has no version ", version, ThereAre(versions)));
}

std::shared_ptr<ServedModel> ModelRegistry::Serving(const std::string& name, int64_t version) const {
  if (version != 0) {
    const auto known = versions_.find({name, version});
    return known == versions_.end() ? nullptr : known->second.served;
  }
  std::shared_ptr<ServedModel> newest;
  for (auto known = versions_.lower_bound({name, 0}); known != versions_.end() && known->first.first == name; ++known) {
    if (known->second.served != nullptr) newest = known->second.served;
  }
  return newest;
}

std::set<int64_t> ModelRegistry::ServingVersions(const std::string& name) const {
  const MutexLock lock(mutex_);
  std::set<int64_t> versions;
  for (auto known = versions_.lower_bound({name, 0}); known != versions_.end() && known->first.first == name; ++known) {
    if (known->second.served != nullptr) versions.insert(known->first.second);
  }
  return versions;
}

ModelRegistry::Version ModelRegistry::Get(const VersionId& id) const {
  const MutexLock lock(mutex_);
  const auto known = versions_.find(id);
  return known == versions_.end() ? Version() : known->second;
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
  for (const auto& [id, known] : versions_) {
    if (known.served != nullptr) list.push_back(known.served);
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
    return absl::NotFoundError(
        absl::StrCat("the repository has no version ", version, " of model ", name, ThereAre(on_disk->second)));
  }
  const VersionId id(name, version);
  const Signature signature = SignatureOf(id);
  const absl::StatusOr<LoadOutcome> outcome = LoadFrom(id, signature, report);
  if (!outcome.ok()) {
    if (absl::IsCancelled(outcome.status())) return outcome.status();
    ClearFailure(id);  // each attempt of a client is reported
    Fail(id, signature.Text(), outcome.status(), report);
    return outcome.status();
  }
  const MutexLock lock(mutex_);
  Version& loaded = versions_[id];
  loaded.failure.reset();
  loaded.state = State::kWanted;
  return LoadedVersion{.model = loaded.served, .outcome = *outcome};
}

absl::Status ModelRegistry::Unload(const std::string& name, int64_t version) {
  const MutexLock loading(loading_);
  LS_RETURN_IF_ERROR(Find(name, version).status());
  for (const int64_t loaded : ServingVersions(name)) {
    if (version == 0 || loaded == version) Remove({name, loaded}, State::kUnwanted);
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
  std::map<VersionId, Signature> found;
  for (const auto& served : List()) {
    if (listing.unreadable.count(served->name) == 0) found[{served->name, served->version}] = Signature();
  }
  for (const auto& [name, versions] : listing.versions) {
    for (const int64_t version : versions) found[{name, version}] = SignatureOf({name, version});
  }
  const MutexLock lock(mutex_);
  for (const auto& looked : found) versions_.try_emplace(looked.first);
  for (auto known = versions_.begin(); known != versions_.end();) {
    auto& [id, version] = *known;
    const auto now = found.find(id);
    version.settled = now != found.end() && version.found == now->second;
    version.found = now == found.end() ? std::nullopt : std::optional(std::move(now->second));
    known = version.IsKnown() ? std::next(known) : versions_.erase(known);
  }
}

void ModelRegistry::Follow(const std::string& name, const std::set<int64_t>& on_disk, Report report) {
  for (const int64_t loaded : ServingVersions(name)) {
    // Another folder may be about to take the place of one that has vanished.
    if (on_disk.count(loaded) == 0 && !Get({name, loaded}).settled) return;
  }
  const std::optional<std::set<int64_t>> chosen = FollowPolicy(name, on_disk, report);
  for (const int64_t loaded : ServingVersions(name)) {
    const VersionId id(name, loaded);
    const bool wanted = Get(id).state == State::kWanted;
    const bool replaced = !wanted && chosen.has_value() && chosen->count(loaded) == 0;
    if (!replaced && on_disk.count(loaded) > 0) {
      if (wanted) FollowVersion(id, report);
      continue;
    }
    Remove(id, State::kFound);
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
  ClearFailure({name, 0});
  std::set<int64_t> usable = on_disk;
  for (;;) {
    std::set<int64_t> chosen = policy->Choose(usable);
    if (chosen.empty()) return std::nullopt;
    const bool waits = std::any_of(chosen.begin(), chosen.end(), [&](int64_t version) {
      const Version known = Get({name, version});
      return !known.settled && known.state == State::kFound;
    });
    if (waits) return std::nullopt;
    const auto unusable =
        std::find_if(chosen.rbegin(), chosen.rend(), [&](int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_) {
          return !FollowVersion({name, version}, report);
        });
    if (unusable == chosen.rend()) return chosen;
    usable.erase(*unusable);
  }
}

bool ModelRegistry::FollowVersion(const VersionId& id, Report report) {
  const Version known = Get(id);
  if (known.state == State::kUnwanted) return true;
  const bool serves = known.served != nullptr;
  if (!known.settled || (serves && known.loaded_from == known.found)) return serves;
  const std::optional<Failure>& failure = known.failure;
  if (failure.has_value() && failure->lasts && failure->signature == known.found->Text()) return serves;
  const absl::StatusOr<LoadOutcome> loaded = LoadFrom(id, *known.found, report);
  if (absl::IsCancelled(loaded.status())) {
    report({RegistryEvent::Kind::kStopped, id.first, id.second, loaded.status()});
    return serves;
  }
  if (!loaded.ok()) {
    Fail(id, known.found->Text(), loaded.status(), report);
    return serves;
  }
  ClearFailure(id);
  return true;
}

std::map<std::pair<std::string, int64_t>, absl::Status> ModelRegistry::failures() const {
  const MutexLock lock(mutex_);
  std::map<VersionId, absl::Status> failures;
  for (const auto& [id, known] : versions_) {
    if (known.failure.has_value()) failures.emplace(id, known.failure->status);
  }
  return failures;
}

void ModelRegistry::Fail(const VersionId& id, const std::string& signature, const absl::Status& status, Report report) {
  {
    const MutexLock lock(mutex_);
    const std::optional<Failure> before =
        std::exchange(versions_[id].failure,
                      Failure{.signature = signature, .lasts = !absl::IsUnavailable(status), .status = status});
    if (before.has_value() && before->signature == signature) return;
  }
  report({RegistryEvent::Kind::kFailed, id.first, id.second, status});
}

void ModelRegistry::ClearFailure(const VersionId& id) {
  const MutexLock lock(mutex_);
  if (const auto known = versions_.find(id); known != versions_.end()) known->second.failure.reset();
}

absl::Status ModelRegistry::CheckNotFailed(const std::string& name, int64_t version) const {
  for (const auto& [id, known] : versions_) {
    if (!known.failure.has_value() || id.first != name) continue;
    if (version != 0 && id.second != 0 && id.second != version) continue;
    return WithoutPath(absl::NotFoundError(
        absl::StrCat("not served, because it could not be loaded: ", known.failure->status.message())));
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
                                            ServingFile(repository_, name), " wants", ThereAre(on_disk)));
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
  const Version before = Get(id);
  const bool reloads = before.served != nullptr;
  if (reloads) {
    if (before.loaded_from == signature) return LoadOutcome::kUnchanged;
    const bool same_files = before.loaded_from.files == signature.files;
    const bool same_serving = before.loaded_from.serving == signature.serving;
    event.kind = RegistryEvent::Kind::kReloaded;
    event.changed = absl::StrCat(same_files ? "" : "the model's files", same_files || same_serving ? "" : " and ",
                                 same_serving ? "" : "serving.json");
    if (same_serving) served_fingerprint = before.served->fingerprint();
  }
  absl::StatusOr<ServedModel> made = MakeServed(id, served_fingerprint);
  const bool same_content = absl::IsAlreadyExists(made.status());
  if (!made.ok() && !same_content) return NameModel(made.status(), name, version);
  if (reloads && SignatureOf(id).files != signature.files) {
    return NameModel(absl::UnavailableError("its files changed while they were read; the version serves as before"),
                     name, version);
  }
  if (same_content) {
    event.kind = RegistryEvent::Kind::kUnchanged;
    event.changed.clear();
  }
  {
    const MutexLock lock(mutex_);  // `before` releases the earlier instance after the lock
    Version& now = versions_[id];
    now.loaded_from = signature;
    if (now.state != State::kWanted) now.state = State::kServing;
    if (made.ok()) now.SetServed(Share(*std::move(made)));
  }
  report(event);
  if (same_content) return LoadOutcome::kUnchanged;
  return reloads ? LoadOutcome::kReloaded : LoadOutcome::kLoaded;
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

std::shared_ptr<ServedModel> ModelRegistry::Share(ServedModel made) const {
  auto model = std::make_unique<ServedModel>(std::move(made));
  return {model.release(), [destroyer = destroyer_](ServedModel* last) {
            destroyer->Post([model = std::unique_ptr<ServedModel>(last)]() mutable {
              model = nullptr;
              // Otherwise the allocator keeps the memory in fragments, which the next model may not be able to use.
              ReturnFreedMemory();
            });
          }};
}

void ModelRegistry::Version::SetServed(std::shared_ptr<ServedModel> next) {
  std::erase_if(retired, [](const std::weak_ptr<ServedModel>& gone) { return gone.expired(); });
  if (served != nullptr) retired.emplace_back(served);
  served = std::move(next);
}

bool ModelRegistry::Version::IsKnown() const {
  return state != State::kFound || failure.has_value() || found.has_value() ||
         std::any_of(retired.begin(), retired.end(), [](const auto& instance) { return !instance.expired(); });
}

void ModelRegistry::Remove(const VersionId& id, State then) {
  const Version before = Get(id);  // releases the instance after the lock
  const MutexLock lock(mutex_);
  Version& now = versions_[id];
  now.SetServed(nullptr);
  now.state = then;
  now.failure.reset();  // of a reload: it is no longer why the version is not served
}

void ModelRegistry::Drain(absl::Time deadline) {
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, known] : versions_) {
      if (known.served != nullptr) all.push_back(known.served);
      for (const std::weak_ptr<ServedModel>& retired : known.retired) {
        if (std::shared_ptr<ServedModel> served = retired.lock(); served != nullptr) all.push_back(std::move(served));
      }
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
