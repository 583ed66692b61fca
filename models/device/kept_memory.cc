#include "models/device/kept_memory.h"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/freed_memory.h"
#include "base/mutex.h"

namespace longshort::models {
namespace {

constexpr ssize_t kForever = -1;
// How long new arenas keep unused pages.
constexpr const char* kOfNewArenas = "arenas.dirty_decay_ms";

std::string OfArena(size_t index) { return "arena." + std::to_string(index) + ".dirty_decay_ms"; }

// Sets a time. Returns the previous one, or `milliseconds` if it is unknown.
ssize_t Exchange(const std::string& name, ssize_t milliseconds) {
  ssize_t before = milliseconds;
  size_t bytes = sizeof(before);
  mallctl(name.c_str(), &before, &bytes, &milliseconds, sizeof(milliseconds));
  return before;
}

size_t Arenas() {
  unsigned count = 0;
  size_t bytes = sizeof(count);
  mallctl("arenas.narenas", &count, &bytes, nullptr, 0);
  return count;
}

Mutex mutex;
int kept_models ABSL_GUARDED_BY(mutex) = 0;          // number of KeptMemory objects
ssize_t new_arenas_before ABSL_GUARDED_BY(mutex);    // setting before the first of them
std::vector<ssize_t> before ABSL_GUARDED_BY(mutex);  // of each arena; new arenas may exist by now

std::atomic<int> models_in_use = 0;

void Keep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  new_arenas_before = Exchange(kOfNewArenas, kForever);
  before.clear();
  for (size_t index = 0; index < Arenas(); ++index) {
    const ssize_t milliseconds = Exchange(OfArena(index), kForever);
    // An arena that does not exist yet has no setting; it gets that of new arenas.
    before.push_back(milliseconds == kForever ? new_arenas_before : milliseconds);
  }
}

void KeepNoLonger() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  Exchange(kOfNewArenas, new_arenas_before);
  for (size_t index = 0; index < Arenas(); ++index) {
    Exchange(OfArena(index), index < before.size() ? before[index] : new_arenas_before);
  }
}

}  // namespace

KeptMemory::KeptMemory() {
  if (mallctl == nullptr) return;
  const MutexLock lock(mutex);
  if (kept_models++ == 0) Keep();
}

KeptMemory::~KeptMemory() {
  if (mallctl == nullptr) return;
  if (in_use_) --models_in_use;
  const MutexLock lock(mutex);
  if (--kept_models == 0) KeepNoLonger();
  ReturnFreedMemory();
}

void KeptMemory::Use() {
  if (!in_use_) ++models_in_use;
  in_use_ = true;
}

void KeptMemory::Rest() {
  if (!in_use_) return;
  in_use_ = false;
  if (--models_in_use == 0 && mallctl != nullptr) ReturnFreedMemory();
}

}  // namespace longshort::models
