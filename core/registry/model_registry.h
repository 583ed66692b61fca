// The loaded models, by name and version. Loads, replaces and unloads them while requests continue.
//
// The state of a version:
//
//   kFound    -- the policy chooses it --> kServing
//   kServing  -- the policy drops it, or its folder is gone --> kFound
//   kWanted   -- its folder is gone --> kFound
//   kServing, kWanted -- Unload --> kUnwanted
//   any state -- LoadVersion --> kWanted
//
// - Lookups find the version in kServing and kWanted.
// - A state changes only after a load has succeeded, so a failed load changes nothing except Version::failure. A new
//   version is loaded while the old one serves. A version whose files or serving.json have changed is loaded again and
//   replaces its own instance.
// - An instance that was replaced or unloaded is retired: its requests finish on it, and then it is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/registry/model_repository.h"
#include "core/registry/served_model.h"
#include "models/families/load_model.h"

namespace longshort::core {

// An event of a version, or a folder that is no model (kSkipped).
struct RegistryEvent {
  // kReloaded: in the place of its earlier instance. kUnchanged: its files were written again, with the same content.
  // kStopped: the loader returned CANCELLED, because the server stops.
  enum class Kind { kLoaded, kReloaded, kUnchanged, kUnloaded, kFailed, kSkipped, kStopped };

  Kind kind = Kind::kLoaded;
  std::string model;         // empty for kSkipped
  int64_t version = 0;       // 0 if unknown
  absl::Status status;       // the reason of kFailed, kSkipped and kStopped
  std::string changed = {};  // of kReloaded: "the model's files", "serving.json", or both
};

// Thread-safe. One thread at a time loads and unloads; lookups never wait for it.
class ModelRegistry {
 public:
  // Loads the model directory of one version. Errors: ALREADY_EXISTS if its fingerprint is `served_fingerprint`, before
  // anything is loaded; CANCELLED if loading was stopped, which is no failure of the model.
  using Loader = std::function<absl::StatusOr<models::LoadedModel>(const std::string& directory,
                                                                   const std::string& served_fingerprint)>;
  // Returns which versions of a model to load. Errors are handled as those of the model.
  using PolicyReader = std::function<absl::StatusOr<VersionPolicy>(const std::string& name)>;
  // Creates the engine that serves a loaded model.
  using EngineFactory = std::function<absl::StatusOr<ServedModel::Kind>(const std::string& name, int64_t version,
                                                                        models::LoadedModel loaded)>;
  // Receives the events of versions.
  using Report = absl::FunctionRef<void(const RegistryEvent&)>;

  // Loads the versions that `policies` choose, by default the newest one of every model in `repository`. Skips folders
  // without a version (lost+found).
  // Errors: those of ListRepository; NOT_FOUND if there is no model; CANCELLED from the loader. If `strict`, or if no
  // model can be loaded, also the first failure, naming the model and version; otherwise failures() has the failures,
  // and the next lower version takes the place of one that failed, as in FollowRepository.
  static absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(const std::string& repository, Loader loader,
                                                             EngineFactory engine_factory, PolicyReader policies = {},
                                                             bool strict = true);
  // Waits until the retired models that no request uses are destroyed. Others are destroyed by the threads that release
  // them.
  ~ModelRegistry();

  // `version` 0 means the newest. An empty name means the only model.
  // Errors: NOT_FOUND with the reason why the model could not be loaded, or naming (the first of) the loaded models;
  // INVALID_ARGUMENT for an empty name if there are several models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(std::string_view name, int64_t version) const;

  // Lists the models in the repository's folders, by reading them. Errors: those of ListRepository.
  absl::StatusOr<RepositoryListing> ListFolders() const { return ListRepository(repository_); }

  // The error as clients may see it: with files by their names in the repository, not by the path to it.
  absl::Status WithoutPath(const absl::Status& status) const;

  // By name, then version.
  std::vector<std::shared_ptr<ServedModel>> List() const;

  // The folders of the repository that are no model or cannot be read, each with the reason, as far as
  // FollowRepository has reported them. Waits while a model is loaded.
  std::set<std::string> skipped() const {
    const MutexLock loading(loading_);
    return skipped_;
  }

  // Why versions are not served, or not served as their files are: the last attempt to load them failed, that of a
  // client or the registry's own. Version 0: all of the model.
  std::map<std::pair<std::string, int64_t>, absl::Status> failures() const;

  // Loads a version (0: the newest in the repository) in addition to the loaded ones. If it is loaded, reloads it if
  // its files or its serving.json have changed since. It stays until it is unloaded. Reports what it does, unless
  // nothing was written. Errors: NOT_FOUND if the repository does not have it; UNAVAILABLE if the model's folder cannot
  // be read, or its files change while a reload reads them; as the loader and the engine factory. After an error the
  // version serves as before.
  absl::StatusOr<LoadedVersion> LoadVersion(
      const std::string& name, int64_t version, Report report = [](const RegistryEvent&) {});
  // Unloads a version (0: all versions of the model). Only LoadVersion loads it again; newer versions are loaded.
  // Errors: NOT_FOUND.
  absl::Status Unload(const std::string& name, int64_t version);

  // Follows the repository: loads the versions that the policies choose, then unloads the others. Reloads versions
  // whose files or serving.json have changed, by size and time first and then by fingerprint. Unloads versions whose
  // folders are gone. Acts on a version only if two calls in a row find the same files (or none), because a writer may
  // be at work; until then the model's versions stay. While a policy cannot be read or chooses no version, or the
  // model's folder cannot be read, the model's versions stay. A failed load is retried when its files have changed, or
  // at once if they could not be read (UNAVAILABLE). A version that Unload removed counts as loaded, so that no other
  // takes its place. Skipped folders are reported once.
  // Each event is reported at once, before the next load; `report` may look up, but neither load nor unload.
  // Errors: those of ListRepository; NOT_FOUND if no model is left, because an unmounted volume leaves an empty folder.
  // Then nothing changes.
  absl::Status FollowRepository(Report report);

  // Drains every engine, including those of unloaded models, in parallel.
  void Drain(absl::Time deadline);

 private:
  using VersionId = std::pair<std::string, int64_t>;
  enum class State {
    kFound,     // in the repository, or it was
    kServing,   // by its model's policy
    kWanted,    // serves because of LoadVersion, whatever the policy says
    kUnwanted,  // unloaded by Unload; only LoadVersion loads it again
  };
  // The signatures of a version's files and of its serving.json.
  struct Signature {
    std::string files;
    std::string serving;

    bool operator==(const Signature&) const = default;
    std::string Text() const { return files + " " + serving; }
  };
  // The last attempt to load a version.
  struct Failure {
    std::string signature;  // of the files
    bool lasts = true;      // until they change
    absl::Status status;
  };
  // Version 0 stands for the whole model; it has only a failure, that of the folder or the policy.
  struct Version {
    State state = State::kFound;
    std::shared_ptr<ServedModel> served;              // null unless kServing or kWanted
    Signature loaded_from;                            // of `served`
    std::vector<std::weak_ptr<ServedModel>> retired;  // perhaps still in use
    std::optional<Failure> failure;
    // What the last FollowRepository found: empty texts if the folder is gone, nullopt if it did not look.
    std::optional<Signature> found;
    bool settled = false;  // the one before found the same

    // Replaces the instance that serves, and retires it.
    void SetServed(std::shared_ptr<ServedModel> next);
    bool IsKnown() const;
  };

  ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory, PolicyReader policies);

  // Copies what is known of a version.
  Version Get(const VersionId& id) const;
  // The instance that serves; `version` 0 means the newest. Null if there is none.
  std::shared_ptr<ServedModel> Serving(const std::string& name, int64_t version) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The versions of a model that serve.
  std::set<int64_t> ServingVersions(const std::string& name) const;
  // Errors: NOT_FOUND with the reason why this version (0: any) of the model could not be loaded, if one failed.
  absl::Status CheckNotFailed(const std::string& name, int64_t version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Errors: those of the policy's reader; NOT_FOUND if it chooses none.
  absl::StatusOr<VersionPolicy> ReadPolicy(const std::string& name, const std::set<int64_t>& on_disk) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  Signature SignatureOf(const VersionId& id) const;
  // Loads and publishes a version whose files have this signature, in the place of its earlier instance if the files or
  // serving.json are others. Reports what it did. Errors: those of LoadVersion. They are not reported.
  absl::StatusOr<LoadOutcome> LoadFrom(const VersionId& id, const Signature& signature, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  absl::StatusOr<ServedModel> MakeServed(const VersionId& id, const std::string& served_fingerprint) const;
  // Makes the model shared: its last owner hands it to destroyer_.
  std::shared_ptr<ServedModel> Share(ServedModel made) const;
  // Unloads a version; its state is then kFound or kUnwanted.
  void Remove(const VersionId& id, State then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Records a failure, and reports it if it is the version's first one or has another signature than the one before.
  void Fail(const VersionId& id, const std::string& signature, const absl::Status& status, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // The last attempt to load it did not fail.
  void ClearFailure(const VersionId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);

  // Takes the next look at all versions.
  void LookAt(const RepositoryListing& listing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Applies FollowRepository to one model.
  void Follow(const std::string& name, const std::set<int64_t>& on_disk, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Loads the versions that the policy chooses of those that can be loaded, and returns them; nullopt if there are
  // none, the policy fails, or one of them is not settled.
  std::optional<std::set<int64_t>> FollowPolicy(const std::string& name, const std::set<int64_t>& on_disk,
                                                Report report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Whether the version serves, or a client does not want it to. Loads it if its files or serving.json are others than
  // those of its instance. Waits for files that still change, and does not retry files that failed.
  bool FollowVersion(const VersionId& id, Report report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);

  const std::string repository_;
  const Loader loader_;
  const EngineFactory engine_factory_;
  const PolicyReader policies_;
  // Destroys models after their last use. The last user is often a listener that the model's own engine calls, and an
  // engine must not be destroyed from its own thread. Shared with every model, because a model may outlive the
  // registry.
  const std::shared_ptr<TaskThread> destroyer_ = std::make_shared<TaskThread>();

  mutable Mutex loading_;  // held while a model is loaded or unloaded; only its holder changes versions_
  std::set<std::string> skipped_ ABSL_GUARDED_BY(loading_);  // as reported

  mutable Mutex mutex_;  // never held for long
  std::map<VersionId, Version> versions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::core
