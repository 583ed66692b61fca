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
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.Join();
  TakeWaiting();
}

void TaskThread::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

std::deque<TaskThread::Task> TaskThread::TakeWaiting() {
  const std::lock_guard lock(mutex_);
  return std::exchange(tasks_, {});
}

void TaskThread::Wait(absl::Time next_run, std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return stopping_ || !tasks_.empty(); };
  if (next_run == absl::InfiniteFuture()) {
    changed_.wait(lock, has_work);
  } else {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(next_run - MonotonicNow()), has_work);
  }
}

void TaskThread::Run() {
  absl::Time next_run = MonotonicNow() + periodic_.interval;
  std::unique_lock lock(mutex_);
  while (true) {
    Wait(next_run, lock);
    if (stopping_ && tasks_.empty()) return;
    if (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // destroys what the task holds, outside the lock
      lock.lock();
    }
    if (next_run == absl::InfiniteFuture() || MonotonicNow() < next_run) continue;
    lock.unlock();
    periodic_.run();
    next_run = MonotonicNow() + periodic_.interval;
    lock.lock();
  }
}

}  // namespace longshort
