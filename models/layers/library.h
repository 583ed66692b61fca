// LibTorch as this process uses it: with how many threads, and what it throws.
//
// Each thread that asks LibTorch for several at once gets a team of its own, which stays. While all teams together,
// idle ones too, have no more threads than there are CPUs, a team spins between two pieces of work; beyond that it
// sleeps at the end of each, and a small step takes far longer. So only threads that run models should have a team, and
// only while they do.
#pragma once

#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace longshort::models {

// Has LibTorch use so many threads for what this thread asks of it from now on, or as many as it has where the system
// has no more to give (the library would end the process). REQUIRES: threads >= 1. Cheap when nothing changes: a model
// calls it before each step, because the thread that runs it may be a new one.
void UseThreads(int threads);

// How many LibTorch used before this program chose anything.
int OwnThreads();

// Ends the team that this thread has, if it has one. The next piece of work makes a new one, which costs some ten
// microseconds for each thread.
void ReleaseThreads();

// Has LibTorch use no other thread for what this one asks of it while the object lives: for loading.
class OneThread final {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// "LibTorch failed <doing>: <what it said>", without the addresses of the stack that it adds: clients get this text.
// RESOURCE_EXHAUSTED if there was no memory, else INTERNAL.
absl::Status LibraryError(std::string_view doing, const std::exception& error);

}  // namespace longshort::models
