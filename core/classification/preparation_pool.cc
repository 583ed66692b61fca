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
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
  threads_.clear();
}

PreparationPool::Owner PreparationPool::NewOwner() {
  const MutexLock lock(mutex_);
  return absl::StrCat(++owners_);
}

void PreparationPool::Submit(const Owner& owner, Task task) {
  {
    const MutexLock lock(mutex_);
    tasks_.Add({.client = owner}, std::move(task));
  }
  changed_.NotifyOne();
}

void PreparationPool::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !tasks_.empty(); });
    auto next = tasks_.TakeFirst();
    if (!next.has_value()) return;
    lock.Unlock();
    const absl::Duration took = next->item();
    next->item = nullptr;  // frees its input before the lock is taken
    lock.Lock();
    tasks_.Complete(next->attributes, took);
  }
}

}  // namespace longshort::core
