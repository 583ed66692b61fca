#include "core/registry/retired_models.h"

#include <utility>

#include "base/freed_memory.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace longshort::core {

// Shared with every model, because a model may outlive its RetiredModels.
class RetiredModels::Reaper {
 public:
  absl::Status Start() { return thread_.Start("the registry's thread"); }
  // After Stop, the caller destroys the model.
  void Take(std::unique_ptr<ServedModel> model) {
    thread_.Post([model = std::move(model)]() mutable {
      model = nullptr;
      // Otherwise the allocator keeps the freed memory in fragments, which the next model may not be able to use.
      ReturnFreedMemory();
    });
  }
  void Stop() { thread_.Stop(); }

 private:
  TaskThread thread_;
};

absl::StatusOr<std::unique_ptr<RetiredModels>> RetiredModels::Create() {
  auto reaper = std::make_shared<Reaper>();
  LS_RETURN_IF_ERROR(reaper->Start());
  return std::unique_ptr<RetiredModels>(new RetiredModels(std::move(reaper)));
}

RetiredModels::RetiredModels(std::shared_ptr<Reaper> reaper) : reaper_(std::move(reaper)) {}

RetiredModels::~RetiredModels() { reaper_->Stop(); }

std::shared_ptr<ServedModel> RetiredModels::Share(std::unique_ptr<ServedModel> model) {
  return {model.release(), [reaper = reaper_](ServedModel* last) { reaper->Take(std::unique_ptr<ServedModel>(last)); }};
}

}  // namespace longshort::core
