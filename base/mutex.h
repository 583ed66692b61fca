// Locks whose use clang checks: ABSL_GUARDED_BY(mutex_) on a member says which mutex guards it, and
// ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) on a function or a lambda says that the caller holds the mutex. clang-tidy
// refuses code that does otherwise.
//
// They wrap std::mutex: the thread sanitizer cannot see into Debian's build of absl::Mutex.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace longshort {

// MutexLock locks it.
class ABSL_LOCKABLE Mutex final {
 public:
  // Says that the mutex is held where the analysis cannot see it. Checks nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class ConditionVariable;
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex as long as it lives, except between Unlock and Lock. Not thread-safe.
class ABSL_SCOPED_LOCKABLE MutexLock final {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // REQUIRES: the mutex is held.
  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  // REQUIRES: the mutex is not held.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Thread-safe. The waits return once `condition` (() -> bool) is true. They call it with the mutex held and release the
// mutex while they sleep. `condition` must not throw.
class ConditionVariable final {
 public:
  template <typename Condition>
  void Wait(Mutex& mutex, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock, std::move(condition));
    lock.release();
  }
  // For at most `time`, which may be infinite. Returns whether the condition is true.
  template <typename Condition>
  bool WaitFor(Mutex& mutex, absl::Duration time, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (time == absl::InfiniteDuration()) {
      Wait(mutex, std::move(condition));
      return true;
    }
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool is_true = changed_.wait_for(lock, absl::ToChronoNanoseconds(time), std::move(condition));
    lock.release();
    return is_true;
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace longshort
