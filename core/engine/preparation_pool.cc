#include "core/engine/preparation_pool.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<std::shared_ptr<PreparationPool>> PreparationPool::Create(int64_t threads) {
  std::shared_ptr<PreparationPool> pool(new PreparationPool());
  try {
    for (int64_t i = 0; i < threads; ++i) pool->threads_.emplace_back(&PreparationPool::Work, pool.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", threads, " threads that prepare: ", error.what()));
  }
  return pool;
}

PreparationPool::~PreparationPool() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PreparationPool::Submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void PreparationPool::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace longshort
