// The loaded models, by name and version. Loads, replaces and unloads them while requests continue.
//
// Lookups no longer find a model that was unloaded. Its requests finish on it, and then it is destroyed
// (RetiredModels). A new version is loaded while the old one serves, and replaces it only when it is ready, so a
// failed load changes nothing. The same applies to a version whose files or serving.json have changed: it is loaded
// again and replaces itself.
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
#include "core/registry/model_repository.h"
#include "core/registry/retired_models.h"
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
  struct Failure {
    std::string signature;  // of the files
    bool lasts = true;      // until they change
    absl::Status status;
  };
  // The signatures of a version's files and of its serving.json.
  struct Signature {
    std::string files;
    std::string serving;

    bool operator==(const Signature&) const = default;
    std::string Text() const { return files + " " + serving; }
  };
  // What one call of FollowRepository found of a version that is in the repository or loaded.
  struct Look {
    Signature signature;   // both texts are empty if the version is gone
    bool settled = false;  // the call before found the same
  };

  ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory, PolicyReader policies,
                std::unique_ptr<RetiredModels> retired);

  // Errors: NOT_FOUND with the reason why this version (0: any) of the model could not be loaded, if one failed.
  absl::Status CheckNotFailed(std::string_view name, int64_t version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the version failed with the same files, and will do so again.
  bool FailsAgain(const VersionId& id, const Signature& signature) const;
  // The last attempt to load it did not fail.
  void Forget(const VersionId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Errors: those of the policy's reader; NOT_FOUND if it chooses none.
  absl::StatusOr<VersionPolicy> ReadPolicy(const std::string& name, const std::set<int64_t>& on_disk) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  Signature SignatureOf(const VersionId& id) const;
  // Loads and publishes a version whose files have this signature, in the place of its earlier instance if the files or
  // serving.json are others. Reports what it did. Errors: those of LoadVersion. They are not reported.
  absl::StatusOr<LoadOutcome> LoadFrom(const VersionId& id, const Signature& signature, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  void Publish(ServedModel made) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  absl::StatusOr<ServedModel> MakeServed(const VersionId& id, const std::string& served_fingerprint) const;
  // Unloads a version, if it is there.
  bool Remove(const std::string& name, int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // The model is no longer in models_.
  void AddUnloaded(const std::shared_ptr<ServedModel>& served) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::set<int64_t> LoadedVersions(const std::string& name) const;
  // Takes the next look at all versions.
  void LookAt(const RepositoryListing& listing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Applies FollowRepository to one model.
  void Follow(const std::string& name, const std::set<int64_t>& on_disk, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Loads the versions that the policy chooses of those that can be loaded, and returns them; nullopt if there are
  // none, the policy fails, or one of them is not settled.
  std::optional<std::set<int64_t>> FollowPolicy(const std::string& name, const std::set<int64_t>& on_disk,
                                                Report report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Whether the version serves. Loads it if it is not loaded, or was loaded from other files or with another
  // serving.json, unless it is not settled or the same files failed before.
  bool FollowVersion(const std::string& name, int64_t version, Report report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);
  // Records a failure, and reports it if it is the version's first one or has another signature than the one before.
  void Fail(const VersionId& id, const std::string& signature, const absl::Status& status, Report report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);

  const std::string repository_;
  const Loader loader_;
  const EngineFactory engine_factory_;
  const PolicyReader policies_;
  const std::unique_ptr<RetiredModels> retired_;

  mutable Mutex loading_;                                            // held while a model is loaded or unloaded
  std::set<std::string> skipped_ ABSL_GUARDED_BY(loading_);          // as reported
  std::map<VersionId, Signature> served_ ABSL_GUARDED_BY(loading_);  // when it was loaded
  std::map<VersionId, Look> looks_ ABSL_GUARDED_BY(loading_);        // the last ones
  std::set<VersionId> kept_ ABSL_GUARDED_BY(loading_);               // loaded by LoadVersion
  std::set<VersionId> unwanted_ ABSL_GUARDED_BY(loading_);           // unloaded by Unload

  mutable Mutex mutex_;  // never held for long
  std::map<std::string, std::map<int64_t, std::shared_ptr<ServedModel>>, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<ServedModel>> unloaded_ ABSL_GUARDED_BY(mutex_);  // perhaps still in use
  std::map<VersionId, Failure> failed_ ABSL_GUARDED_BY(mutex_);               // version 0: the policy
};

}  // namespace longshort::core
