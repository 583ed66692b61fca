// The loaded models, by name and version: loaded, swapped and unloaded while requests go on.
//
// A model that leaves the registry is found no more; the requests that have it finish on it, and then it is destroyed
// (RetiredModels). A new version is loaded beside the old one and takes its place only once it is ready, so one that
// fails to load changes nothing. The same goes for a version whose serving.json has changed: it is loaded anew beside
// itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry/model_repository.h"
#include "core/registry/retired_models.h"
#include "core/registry/served_model.h"
#include "models/loading/loaded_model.h"

namespace longshort::core {

// Something that became of a version, or a folder that was found to be none (kSkipped).
struct RegistryEvent {
  enum class Kind { kLoaded, kUnloaded, kFailed, kSkipped };

  Kind kind = Kind::kLoaded;
  std::string model;    // empty of kSkipped
  int64_t version = 0;  // 0 if it is not known which
  absl::Status status;  // of kFailed and kSkipped: why
};

// Thread-safe. One thread at a time loads and unloads; who looks up never waits for it.
class ModelRegistry {
 public:
  // Loads the model directory of one version. Errors: CANCELLED if nothing is to be loaded any more, which is no
  // failure of the model.
  using Loader = std::function<absl::StatusOr<models::LoadedModel>(const std::string& directory)>;
  // Says which versions of a model are to be loaded. Errors: as for a model that cannot be loaded.
  using PolicyReader = std::function<absl::StatusOr<VersionPolicy>(const std::string& name)>;
  // Gives a loaded model the engine that serves it.
  using EngineFactory = std::function<absl::StatusOr<ServedModel::Kind>(const std::string& name, int64_t version,
                                                                        models::LoadedModel loaded)>;
  // Is told what has become of a version.
  using Tell = absl::FunctionRef<void(const RegistryEvent&)>;

  // Loads what `policies` choose, by default the newest version of every model in `repository`. A folder without a
  // version (lost+found) is skipped.
  // Errors: those of ListRepository; NOT_FOUND if there is no model, or none of the versions that a policy wants;
  // otherwise the first failure, naming the model and version.
  static absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(const std::string& repository, Loader loader,
                                                             EngineFactory engine_factory, PolicyReader policies = {});

  // `version` 0 means the newest. An empty name means the only model.
  // Errors: NOT_FOUND naming (the first of) what is there; INVALID_ARGUMENT for an empty name where there are several
  // models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(std::string_view name, int64_t version) const;

  // What could be loaded, as the repository's folders say. Reads them. Errors: those of ListRepository.
  absl::StatusOr<RepositoryListing> ListFolders() const { return ListRepository(repository_); }

  // By name, then version.
  std::vector<std::shared_ptr<ServedModel>> List() const;

  // What the repository had that was no model or could not be read, each with the reason. Until it is followed: then
  // that is told.
  const std::set<std::string>& skipped() const { return skipped_; }

  // Loads a version (0: the newest in the repository) beside those that are loaded; nothing to do if it is one of them.
  // It stays until it is unloaded. If it had to be loaded, what became of that is told. Errors: NOT_FOUND if the
  // repository does not have it; UNAVAILABLE if the model's folder cannot be read; as the loader and the engine
  // factory.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadVersion(
      const std::string& name, int64_t version, Tell tell = [](const RegistryEvent&) {});
  // Lets a version go (0: all of the model). It is not loaded again but by LoadVersion; a newer one is.
  // Errors: NOT_FOUND.
  absl::Status Unload(const std::string& name, int64_t version);

  // Follows the repository: loads what the policies choose of the versions that can be loaded, then lets the others go;
  // loads anew what serves with a serving.json that has changed; lets go what is no longer there. As long as a policy
  // cannot be read, or chooses nothing, what is loaded stays; so it does while the model's folder cannot be read. What
  // failed is tried again when its files have changed, or at once if they could not be read (UNAVAILABLE); a version
  // that was let go by Unload counts as loaded, so that no other takes its place. What is skipped is told once.
  // Each event is told at once, before the next load; `tell` may look up, but neither load nor let go.
  // Errors: those of ListRepository; NOT_FOUND if there is no model any more, since an empty folder is what stays of a
  // volume that was unmounted. Then nothing is changed.
  absl::Status FollowRepository(Tell tell);

  // Drains every engine, side by side, those of models that were let go too.
  void Drain(absl::Time deadline);

 private:
  using VersionId = std::pair<std::string, int64_t>;
  struct Failure {
    std::string signature;  // of the files
    bool lasts = true;      // while they do not change
  };

  ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory, PolicyReader policies,
                std::unique_ptr<RetiredModels> retired);

  // All but MakeServed and LoadedVersions with loading_ held.

  // Errors: those of the policy's reader; NOT_FOUND if it chooses none.
  absl::StatusOr<VersionPolicy> ReadPolicy(const std::string& name, const std::set<int64_t>& on_disk) const;
  // Loads and publishes, in the place of what was loaded as this version.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadFrom(const std::string& name, int64_t version);
  absl::StatusOr<ServedModel> MakeServed(const std::string& name, int64_t version) const;
  // Takes a version out, if it is there.
  bool Retire(const std::string& name, int64_t version);
  // It is in models_ no more. With mutex_ held.
  void NoteLeaving(const std::shared_ptr<ServedModel>& served);
  std::set<int64_t> LoadedVersions(const std::string& name) const;
  // What FollowRepository does about one model.
  void Follow(const std::string& name, const std::set<int64_t>& on_disk, Tell tell);
  // Has those loaded that the policy chooses of the versions that can be, and returns them; nullopt if there are none
  // or it cannot be told.
  std::optional<std::set<int64_t>> FollowPolicy(const std::string& name, const std::set<int64_t>& on_disk, Tell tell);
  // Whether the version serves: loads it if it is not loaded, or was with another serving.json, unless that failed
  // before and would again.
  bool FollowVersion(const std::string& name, int64_t version, Tell tell);
  // Notes a failure, and tells it if it is the first with this signature.
  void Fail(const VersionId& id, const std::string& signature, const absl::Status& status, Tell tell);

  const std::string repository_;
  const Loader loader_;
  const EngineFactory engine_factory_;
  const PolicyReader policies_;
  const std::unique_ptr<RetiredModels> retired_;

  std::mutex loading_;                       // held while something is loaded or let go; guards the next five
  std::set<std::string> skipped_;            // what was told
  std::map<VersionId, Failure> failed_;      // version 0: the policy
  std::map<VersionId, std::string> served_;  // the signature of its serving.json when it was loaded
  std::set<VersionId> kept_;                 // loaded by LoadVersion
  std::set<VersionId> unwanted_;             // let go by Unload

  mutable std::mutex mutex_;  // guards what follows; never held for long
  std::map<std::string, std::map<int64_t, std::shared_ptr<ServedModel>>, std::less<>> models_;
  std::vector<std::weak_ptr<ServedModel>> leaving_;  // let go, perhaps still in use
};

}  // namespace longshort::core
