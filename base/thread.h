// Threads whose start can fail with a Status, and whose destructor joins them.
#pragma once

#include <deque>
#include <functional>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace longshort {

// One thread. Not thread-safe.
class Thread final {
 public:
  Thread() = default;
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = delete;
  // Joins. The owner must make `body` return first.
  ~Thread() { Join(); }

  // Runs `body` on a new thread. `purpose` completes the error message: "the thread that loads models".
  // REQUIRES: not started.
  // Errors: RESOURCE_EXHAUSTED if the system cannot create a thread.
  absl::Status Start(std::string_view purpose, absl::AnyInvocable<void()> body);
  bool started() const { return thread_.joinable(); }
  // Waits until `body` has returned. No effect if the thread was not started.
  void Join();
  // For pthread_kill. REQUIRES: started().
  std::thread::native_handle_type handle() { return thread_.native_handle(); }

 private:
  std::thread thread_;
};

// A thread that runs tasks one at a time, in the order of Post. It can also call a function periodically.
//
// Thread-safe, except for Start, Stop and the destructor: one thread at a time may call them, and no task may.
class TaskThread final {
 public:
  using Task = absl::AnyInvocable<void()>;
  // A function that runs every `interval` while no task runs, first one interval after Start.
  struct Periodic {
    absl::Duration interval = absl::InfiniteDuration();
    std::function<void()> run;
  };

  TaskThread() = default;
  ~TaskThread() { Stop(); }

  // Starts the thread. Tasks that were posted before wait for it. Errors: those of Thread::Start.
  absl::Status Start(std::string_view purpose) { return Start(purpose, Periodic()); }
  absl::Status Start(std::string_view purpose, Periodic periodic);
  // Runs the waiting tasks, then ends the thread. Tasks that are posted later are destroyed. If the thread was never
  // started, all tasks are destroyed.
  void Stop();

  void Post(Task task);
  // Removes and returns the tasks that have not begun. The thread will not run them.
  std::deque<Task> TakeWaiting();

 private:
  void Run();

  Periodic periodic_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the other members
};

}  // namespace longshort
