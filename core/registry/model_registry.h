// The loaded models, by name and version.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry/served_model.h"
#include "models/loaded_model.h"

namespace longshort {

// Thread-safe.
class ModelRegistry {
 public:
  // Loads the model directory of one version (design: <repository>/<model>/<version>/).
  using Loader = std::function<absl::StatusOr<LoadedModel>(const std::string& directory)>;
  // Gives a loaded model the engine that serves it.
  using EngineFactory =
      std::function<absl::StatusOr<ServedModel::Kind>(const std::string& name, int64_t version, LoadedModel loaded)>;

  // Loads the newest version of every model in `repository`: <repository>/<model>/<version>/, versions being whole
  // numbers. A folder without a version (lost+found) is skipped. Errors: NOT_FOUND if there is no model; otherwise the
  // first failure, naming the model and version.
  static absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(const std::string& repository, const Loader& loader,
                                                             const EngineFactory& engine_factory);

  // `version` 0 means the newest. An empty name means the only model.
  // Errors: NOT_FOUND naming what is there; INVALID_ARGUMENT for an empty name where there are several models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(std::string_view name, int64_t version) const;

  // By name, then version.
  std::vector<std::shared_ptr<ServedModel>> List() const;

  // The folders of the repository that are no models, each with the reason.
  const std::vector<std::string>& skipped() const { return skipped_; }

  // Drains every engine, side by side.
  void Drain(absl::Time deadline);

 private:
  std::map<std::string, std::map<int64_t, std::shared_ptr<ServedModel>>, std::less<>> models_;
  std::vector<std::string> skipped_;
};

}  // namespace longshort
