#include "core/classification/preparation_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {

absl::StatusOr<std::shared_ptr<PreparationPool>> PreparationPool::Create(int64_t threads) {
  std::shared_ptr<PreparationPool> pool(new PreparationPool());
  for (int64_t i = 0; i < threads; ++i) {
    Thread& thread = pool->threads_.emplace_back();
    LS_RETURN_IF_ERROR(thread.Start("a thread that prepares items", [&pool = *pool] { pool.Work(); }));
  }
  return pool;
}

PreparationPool::~PreparationPool() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

PreparationPool::Owner PreparationPool::NewOwner() {
  std::lock_guard lock(mutex_);
  return absl::StrCat(++owners_);
}

void PreparationPool::Submit(const Owner& owner, Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.Add({.client = owner}, std::move(task));
  }
  changed_.notify_one();
}

void PreparationPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    auto next = tasks_.TakeFirst();
    if (!next.has_value()) return;
    lock.unlock();
    const absl::Duration took = next->thing();
    next->thing = nullptr;  // frees its input before the lock is taken
    lock.lock();
    tasks_.Settle(next->ticket, took);
  }
}

}  // namespace longshort::core
