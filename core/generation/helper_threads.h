// Threads that take a part of one thread's work.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace longshort::core {

// Thread: one, its owner's.
class HelperThreads final {
 public:
  // Errors: RESOURCE_EXHAUSTED if the system cannot create the threads.
  static absl::StatusOr<std::unique_ptr<HelperThreads>> Create(int64_t threads);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // Calls use(i) once for each i from 0 to count - 1, on the calling thread and the helpers, and returns when all calls
  // have returned. `use` must not throw.
  void ForEach(int64_t count, absl::FunctionRef<void(int64_t)> use);

 private:
  HelperThreads() = default;
  void Help();
  // Makes calls until none is left.
  void Call();

  Mutex mutex_;
  ConditionVariable begun_, done_;
  absl::FunctionRef<void(int64_t)>* use_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: there is no work
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t calling_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that make calls
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // last: they use the other members
};

}  // namespace longshort::core
