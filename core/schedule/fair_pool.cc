#include "core/schedule/fair_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort::core {

absl::StatusOr<std::shared_ptr<FairPool>> FairPool::Create(int64_t threads, const WaitingLimits& limits,
                                                           int64_t max_running_per_client) {
  const WorkOrder::Options order = {.max_running_per_client = std::max<int64_t>(1, max_running_per_client)};
  std::shared_ptr<FairPool> pool(new FairPool(limits, order));
  for (int64_t i = 0; i < threads; ++i) {
    Thread& thread = pool->threads_.emplace_back();
    LS_RETURN_IF_ERROR(thread.Start("a thread that works for all clients", [&pool = *pool] { pool.Work(); }));
  }
  return pool;
}

FairPool::~FairPool() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyAll();
  threads_.clear();
}

std::string FairPool::NewOwner() {
  const MutexLock lock(mutex_);
  return absl::StrCat(++owners_);
}

FairPool::Task FairPool::Timed(absl::AnyInvocable<void()> task) {
  return [task = std::move(task)]() mutable {
    const absl::Duration before = ThreadTime();
    task();
    return ThreadTime() - before;
  };
}

void FairPool::Submit(WorkAttributes attributes, Task task) {
  bool wakes = false;
  {
    const MutexLock lock(mutex_);
    wakes = Add(std::move(attributes), std::move(task));
  }
  if (wakes) changed_.NotifyOne();
}

absl::Status FairPool::TrySubmit(WorkAttributes attributes, Task task) {
  bool wakes = false;
  {
    const MutexLock lock(mutex_);
    LS_RETURN_IF_ERROR(CheckRoom(limits_, tasks_.Ahead(attributes), tasks_.LoadOf(attributes.client), attributes));
    wakes = Add(std::move(attributes), std::move(task));
  }
  if (wakes) changed_.NotifyOne();
  return absl::OkStatus();
}

bool FairPool::Add(WorkAttributes attributes, Task task) {
  tasks_.Add(std::move(attributes), std::move(task));
  return idle_ > 0 && HasRunnable();
}

bool FairPool::HasRunnable() {
  return tasks_.First([](const Task&) { return true; }) != nullptr;
}

int64_t FairPool::size() const {
  const MutexLock lock(mutex_);
  return tasks_.size() + tasks_.load().running;
}

void FairPool::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || HasRunnable(); });
    --idle_;
    auto next = tasks_.TakeFirst();  // once closed, the threads that run a client's tasks also take its others
    if (!next.has_value()) return;
    lock.Unlock();
    const absl::Duration took = next->item();
    next->item = nullptr;  // frees its input before the lock is taken
    lock.Lock();
    tasks_.Complete(next->attributes, took);
  }
}

}  // namespace longshort::core
