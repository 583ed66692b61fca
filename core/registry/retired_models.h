// Destroys models once nobody uses them any more, on a thread of its own: the last user is often a listener that the
// model's own engine calls, and an engine must not be destroyed from its own thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"

namespace longshort::core {

class RetiredModels final {
 public:
  // Errors: RESOURCE_EXHAUSTED if there is no thread to be had.
  static absl::StatusOr<std::unique_ptr<RetiredModels>> Create();
  // Waits for those that are being destroyed. A model that is let go later is destroyed by who lets it go.
  ~RetiredModels();

  // The model, to be shared: the last to let go hands it to the thread.
  std::shared_ptr<ServedModel> Share(std::unique_ptr<ServedModel> model);

 private:
  class Reaper;

  explicit RetiredModels(std::shared_ptr<Reaper> reaper);

  const std::shared_ptr<Reaper> reaper_;
};

}  // namespace longshort::core
