#include "models/device/library.h"

#include <omp.h>

#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "c10/util/Exception.h"

namespace longshort::models {
namespace {

// Threads in the calling thread's team, itself included.
thread_local int team_size = 1;

// On a CPU, LibTorch has no exception type for this; only the allocator's text identifies it.
constexpr std::string_view kNoMemory = "DefaultCPUAllocator: ";

}  // namespace

bool CanMakeThreads(int threads) {
  Mutex end;
  std::vector<std::thread> made;
  bool can = true;
  {
    const MutexLock not_yet(end);
    try {
      while (static_cast<int>(made.size()) < threads) made.emplace_back([&end] { const MutexLock now(end); });
    } catch (const std::system_error&) {
      can = false;
    }
  }
  for (std::thread& thread : made) thread.join();
  return can;
}

int OwnThreads() {
  static const int threads = at::get_num_threads();
  return threads;
}

void UseThreads(int threads) {
  OwnThreads();
  thread_local int used = 0;
  if (threads > team_size && !CanMakeThreads(threads - team_size)) threads = team_size;
  if (threads > 1) team_size = threads;
  if (threads == used) return;
  at::set_num_threads(threads);
  used = threads;
}

void ReleaseThreads() {
  team_size = 1;
  omp_pause_resource(omp_pause_soft, omp_get_initial_device());
}

OneThread::OneThread() : before_(at::get_num_threads()) {
  OwnThreads();
  at::set_num_threads(1);
}

OneThread::~OneThread() { at::set_num_threads(before_); }

absl::Status LibraryError(std::string_view doing, const std::exception& error) {
  const auto* const of_library = dynamic_cast<const c10::Error*>(&error);
  const std::string what = of_library == nullptr ? error.what() : of_library->what_without_backtrace();
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                         absl::StrContains(what, std::string(kNoMemory));
  return {no_memory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal,
          absl::StrCat("LibTorch failed ", std::string(doing), ": ", what)};
}

}  // namespace longshort::models
