// How this process uses LibTorch: its threads, its errors, and its memory between two batches.
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

// Makes LibTorch run calls of this thread without other threads while the object lives. For loading and training.
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

// --- memory ---
//
// Keeps the memory that one batch, or step of a language model, has freed for the next.
//
// The allocator (jemalloc) returns unused pages to the system after a while. The next batch must then fault them in one
// by one, which can take as long as the batch itself. While any model works, this class therefore disables that return.
// Free pages go back when all models rest, or when one is destroyed. In between, the process holds what its largest
// batches needed.
//
// The setting applies to all memory of the process. Without jemalloc (for example, with sanitizers) this class has no
// effect.

// Held by a model: the first member of its weights and of each replica, so that it is destroyed after all the memory
// that they free.
//
// Thread: the one that runs the model; any thread may create and destroy it.
class KeptMemory final {
 public:
  KeptMemory();
  // Returns free memory to the system even if other models work, because it includes this model's weights. The last
  // destructor restores the allocator's original settings.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // Marks the model as working until Rest. Cheap enough to call before each batch.
  void Use();
  // Returns free memory to the system if no other model works.
  void Rest();

 private:
  bool in_use_ = false;
};

}  // namespace longshort::models
