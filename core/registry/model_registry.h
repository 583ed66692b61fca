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
#include "core/engine/engine.h"
#include "models/loaded_model.h"

namespace longshort {

// One version of one model, ready to serve. Shared with the requests in flight.
struct ServedModel {
  std::string name;
  int64_t version = 0;
  LanguageModelInfo info;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Engine> engine;
  absl::Duration load_duration;
};

// Thread-safe.
class ModelRegistry {
 public:
  // Loads the model directory of one version (design: <repository>/<model>/<version>/).
  using Loader = std::function<absl::StatusOr<LoadedLanguageModel>(const std::string& directory)>;
  // Makes the engine that serves a loaded model.
  using EngineFactory = std::function<absl::StatusOr<std::unique_ptr<Engine>>(const std::string& name, int64_t version,
                                                                              LoadedLanguageModel loaded)>;

  // Loads the newest version of every model in `repository`: <repository>/<model>/<version>/, versions being whole
  // numbers. Errors: NOT_FOUND if there is no model; otherwise the first failure, naming the model and version.
  static absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(const std::string& repository, const Loader& loader,
                                                             const EngineFactory& engine_factory);

  // `version` 0 means the newest. An empty name means the only model.
  // Errors: NOT_FOUND naming what is there; INVALID_ARGUMENT for an empty name where there are several models.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(std::string_view name, int64_t version) const;

  // By name, then version.
  std::vector<std::shared_ptr<ServedModel>> List() const;

  // Drains every engine, side by side.
  void Drain(absl::Time deadline);

 private:
  std::map<std::string, std::map<int64_t, std::shared_ptr<ServedModel>>, std::less<>> models_;
};

}  // namespace longshort
