// The loaded models, by name and version: loaded, swapped and unloaded while requests go on.
//
// A model that leaves the registry is found no more; the requests that have it finish on it, and then it is destroyed
// (RetiredModels). A new version is loaded beside the old one and takes its place only once it is ready, so one that
// fails to load changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry/model_repository.h"
#include "core/registry/retired_models.h"
#include "core/registry/served_model.h"
#include "models/loaded_model.h"

namespace longshort {

// Something that became of a version.
struct RegistryEvent {
  enum class Kind { kLoaded, kUnloaded, kFailed };

  Kind kind = Kind::kLoaded;
  std::string model;
  int64_t version = 0;
  absl::Status status;  // of kFailed: why it could not be loaded
};

// Thread-safe. One thread at a time loads and unloads; who looks up never waits for it.
class ModelRegistry {
 public:
  // Loads the model directory of one version.
  using Loader = std::function<absl::StatusOr<LoadedModel>(const std::string& directory)>;
  // Gives a loaded model the engine that serves it.
  using EngineFactory =
      std::function<absl::StatusOr<ServedModel::Kind>(const std::string& name, int64_t version, LoadedModel loaded)>;

  // Loads the newest version of every model in `repository`. A folder without a version (lost+found) is skipped.
  // Errors: NOT_FOUND if there is no model; otherwise the first failure, naming the model and version.
  static absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(const std::string& repository, Loader loader,
                                                             EngineFactory engine_factory);

  // `version` 0 means the newest. An empty name means the only model.
  // Errors: NOT_FOUND naming what is there; INVALID_ARGUMENT for an empty name where there are several models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(std::string_view name, int64_t version) const;

  // By name, then version.
  std::vector<std::shared_ptr<ServedModel>> List() const;

  // The folders of the repository that were no models when it was loaded, each with the reason.
  const std::vector<std::string>& skipped() const { return skipped_; }

  // Loads a version (0: the newest in the repository) beside those that are loaded; nothing to do if it is one of them.
  // It stays until it is unloaded. Errors: NOT_FOUND if the repository does not have it; as the loader and the engine
  // factory.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadVersion(const std::string& name, int64_t version);
  // Lets a version go (0: all of the model). It is not loaded again but by LoadVersion; a newer one is.
  // Errors: NOT_FOUND.
  absl::Status Unload(const std::string& name, int64_t version);

  // Follows the repository: loads new newest versions and then lets the older ones go, lets go what is no longer there.
  // A version that failed is tried again when its files have changed. Errors: NOT_FOUND if the repository cannot be
  // read; then nothing is changed.
  absl::StatusOr<std::vector<RegistryEvent>> FollowRepository();

  // Drains every engine, side by side, those of models that were let go too.
  void Drain(absl::Time deadline);

 private:
  using VersionId = std::pair<std::string, int64_t>;

  ModelRegistry(std::string repository, Loader loader, EngineFactory engine_factory,
                std::unique_ptr<RetiredModels> retired);

  // Loads and publishes. With loading_ held.
  absl::StatusOr<std::shared_ptr<ServedModel>> LoadFrom(const std::string& name, int64_t version);
  absl::StatusOr<ServedModel> MakeServed(const std::string& name, int64_t version) const;
  // Takes a version out, if it is there. With loading_ held.
  bool Retire(const std::string& name, int64_t version);
  std::set<int64_t> LoadedVersions(const std::string& name) const;
  // What FollowRepository does about one model. With loading_ held.
  void Follow(const std::string& name, const std::set<int64_t>& on_disk, std::vector<RegistryEvent>& events);

  const std::string repository_;
  const Loader loader_;
  const EngineFactory engine_factory_;
  const std::unique_ptr<RetiredModels> retired_;
  std::vector<std::string> skipped_;

  std::mutex loading_;                       // held while something is loaded or let go; guards the next three
  std::map<VersionId, std::string> failed_;  // the folder's signature when it failed
  std::set<VersionId> kept_;                 // loaded by LoadVersion
  std::set<VersionId> unwanted_;             // let go by Unload

  mutable std::mutex mutex_;  // guards what follows; never held for long
  std::map<std::string, std::map<int64_t, std::shared_ptr<ServedModel>>, std::less<>> models_;
  std::vector<std::weak_ptr<ServedModel>> leaving_;  // let go, perhaps still in use
};

}  // namespace longshort
