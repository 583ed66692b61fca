#include "base/thread.h"

#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace longshort {

absl::Status Thread::Start(std::string_view purpose, absl::AnyInvocable<void()> body) {
  try {
    thread_ = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", std::string(purpose), ": ", error.what()));
  }
  return absl::OkStatus();
}

void Thread::Join() {
  if (thread_.joinable()) thread_.join();
}

absl::Status TaskThread::Start(std::string_view purpose, Periodic periodic) {
  periodic_ = std::move(periodic);
  return thread_.Start(purpose, [this] { Run(); });
}

void TaskThread::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
  thread_.Join();
  TakeWaiting();
}

void TaskThread::Post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.NotifyOne();
}

std::deque<TaskThread::Task> TaskThread::TakeWaiting() {
  const MutexLock lock(mutex_);
  return std::exchange(tasks_, {});
}

void TaskThread::Run() {
  absl::Time next_run = MonotonicNow() + periodic_.interval;
  MutexLock lock(mutex_);
  while (true) {
    changed_.WaitFor(mutex_, next_run - MonotonicNow(),
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); });
    if (stopping_ && tasks_.empty()) return;
    if (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      task();
      task = nullptr;  // destroys what the task holds, outside the lock
      lock.Lock();
    }
    if (next_run == absl::InfiniteFuture() || MonotonicNow() < next_run) continue;
    lock.Unlock();
    periodic_.run();
    next_run = MonotonicNow() + periodic_.interval;
    lock.Lock();
  }
}

}  // namespace longshort
