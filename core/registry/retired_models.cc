#include "core/registry/retired_models.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/freed_memory.h"

namespace longshort {

// Shared with every model, so that one that outlives its RetiredModels finds it.
class RetiredModels::Reaper {
 public:
  void Start() {
    thread_ = std::thread([this] { Work(); });
  }

  void Take(std::unique_ptr<ServedModel> model) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;  // and destroyed here
      retired_.push_back(std::move(model));
    }
    changed_.notify_one();
  }

  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closed_ || !retired_.empty(); });
      if (retired_.empty()) return;
      std::vector<std::unique_ptr<ServedModel>> retired = std::exchange(retired_, {});
      lock.unlock();
      retired.clear();
      // The allocator would keep what they had, in holes that the next model's parts need not fit into.
      ReturnFreedMemory();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<ServedModel>> retired_;  // guarded by mutex_
  bool closed_ = false;                                // guarded by mutex_
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<RetiredModels>> RetiredModels::Create() {
  auto reaper = std::make_shared<Reaper>();
  try {
    reaper->Start();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the registry's thread: ", error.what()));
  }
  return std::unique_ptr<RetiredModels>(new RetiredModels(std::move(reaper)));
}

RetiredModels::RetiredModels(std::shared_ptr<Reaper> reaper) : reaper_(std::move(reaper)) {}

RetiredModels::~RetiredModels() { reaper_->Close(); }

std::shared_ptr<ServedModel> RetiredModels::Share(std::unique_ptr<ServedModel> model) {
  return {model.release(), [reaper = reaper_](ServedModel* last) { reaper->Take(std::unique_ptr<ServedModel>(last)); }};
}

}  // namespace longshort
