// How this process uses LibTorch: its threads and its errors.
//
// Each thread that makes LibTorch use several threads gets a team of its own, which stays alive. A team spins between
// two pieces of work as long as all teams, idle ones included, have at most one thread per CPU. With more threads, a
// team sleeps after each piece of work, and a small step takes far longer. Therefore only threads that run models
// should have a team, and only while they run one.
#pragma once

#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace longshort::models {

// Makes LibTorch use this many threads for later calls of the calling thread. If the system cannot create them, the
// team keeps its size: the library would abort the process otherwise. Cheap when nothing changes: a model calls it
// before each step, because a new thread may run it. REQUIRES: threads >= 1.
void UseThreads(int threads);

// Whether the system can create this many threads at once.
bool CanMakeThreads(int threads);

// LibTorch's default number of threads.
int OwnThreads();

// Ends the calling thread's team, if it has one. The next piece of work creates a new one, at about 10 us per thread.
void ReleaseThreads();

// Makes LibTorch run calls of this thread without other threads while the object lives. For loading.
class OneThread final {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// "LibTorch failed <doing>: <what it said>", without the stack trace that LibTorch adds: clients see this text.
// RESOURCE_EXHAUSTED if there was no memory, else INTERNAL.
absl::Status LibraryError(std::string_view doing, const std::exception& error);

}  // namespace longshort::models
