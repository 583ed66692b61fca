// Destroys models after their last use, on its own thread: the last user is often a listener that the model's own
// engine calls, and an engine must not be destroyed from its own thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"

namespace longshort::core {

class RetiredModels final {
 public:
  // Errors: RESOURCE_EXHAUSTED if no thread can be created.
  static absl::StatusOr<std::unique_ptr<RetiredModels>> Create();
  // Waits until pending models are destroyed. A model released later is destroyed by the thread that releases it.
  ~RetiredModels();

  // Makes the model shared: its last owner hands it to the thread.
  std::shared_ptr<ServedModel> Share(std::unique_ptr<ServedModel> model);

 private:
  class Reaper;

  explicit RetiredModels(std::shared_ptr<Reaper> reaper);

  const std::shared_ptr<Reaper> reaper_;
};

}  // namespace longshort::core
