#include "models/device/library.h"

#include <omp.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/freed_memory.h"
#include "base/mutex.h"
#include "c10/util/Exception.h"

namespace longshort::models {
namespace {

// Threads in the calling thread's team, itself included.
thread_local int team_size = 1;

// On a CPU, LibTorch has no exception type for this; only the allocator's text identifies it.
constexpr std::string_view kNoMemory = "DefaultCPUAllocator: ";

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

Mutex kept_mutex;
int kept_models ABSL_GUARDED_BY(kept_mutex) = 0;          // number of KeptMemory objects
ssize_t new_arenas_before ABSL_GUARDED_BY(kept_mutex);    // setting before the first of them
std::vector<ssize_t> before ABSL_GUARDED_BY(kept_mutex);  // of each arena; new arenas may exist by now

std::atomic<int> models_in_use = 0;

void Keep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kept_mutex) {
  new_arenas_before = Exchange(kOfNewArenas, kForever);
  before.clear();
  for (size_t index = 0; index < Arenas(); ++index) {
    const ssize_t milliseconds = Exchange(OfArena(index), kForever);
    // An arena that does not exist yet has no setting; it gets that of new arenas.
    before.push_back(milliseconds == kForever ? new_arenas_before : milliseconds);
  }
}

void KeepNoLonger() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kept_mutex) {
  Exchange(kOfNewArenas, new_arenas_before);
  for (size_t index = 0; index < Arenas(); ++index) {
    Exchange(OfArena(index), index < before.size() ? before[index] : new_arenas_before);
  }
}

// Maximum duration of a trial of one thread, unless the team is known to be slower.
constexpr double kLongestTrialSeconds = 10e-3;
// A team must be faster by this factor, because it keeps its CPUs from other work, such as writing responses to
// clients.
constexpr double kWorthATeam = 1.25;
// A team that gets only this many CPUs, spinning included, is at most this many times as fast as one thread.
constexpr double kFewProcessors = 1.5;
// Weight of the newest step in the mean of a team's share.
constexpr double kNewest = 0.25;
// Steps between trials of the slower choice: initial and maximum distance, and for each time by which it is slower.
constexpr int64_t kFirstDistance = 64, kLastDistance = 1024, kDistanceOfSlowness = 16;

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

KeptMemory::KeptMemory() {
  if (mallctl == nullptr) return;
  const MutexLock lock(kept_mutex);
  if (kept_models++ == 0) Keep();
}

KeptMemory::~KeptMemory() {
  if (mallctl == nullptr) return;
  if (in_use_) --models_in_use;
  const MutexLock lock(kept_mutex);
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

void ThreadChoice::Times::Add(double seconds, int64_t step) {
  if (step - last_step_ > 2 * kSteps) count_ = 0;
  last_step_ = step;
  last_[count_++ % kSteps] = seconds;
}

double ThreadChoice::Times::Median() const {
  if (count_ == 0) return 0;
  const int64_t count = std::min(count_, kSteps);
  std::array<double, kSteps> sorted = last_;
  const auto middle = sorted.begin() + (count - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count);
  return *middle;
}

ThreadChoice::Size& ThreadChoice::SizeOf(int64_t work) {
  return sizes_[std::bit_width(static_cast<uint64_t>(work)) - 1];
}

bool ThreadChoice::IsOneThreadWorthATrial(const Size& size, int64_t work) const {
  const double team = size.team.Median();
  if (team == 0) return false;
  return threads_ * team * static_cast<double>(work) < kLongestTrialSeconds || team > threads_ * size.best_team ||
         threads_ * size.team_share < kFewProcessors;
}

int ThreadChoice::Next(int64_t work) {
  if (threads_ == 1) return 1;
  Size& size = SizeOf(work);
  size.tries_other = (size.is_alone || IsOneThreadWorthATrial(size, work)) && --size.steps_to_trial < 0;
  return size.is_alone == size.tries_other ? threads_ : 1;
}

void ThreadChoice::Record(int64_t work, double seconds, double processor_seconds) {
  if (threads_ == 1) return;
  Size& size = SizeOf(work);
  const double newest = seconds / static_cast<double>(work);
  const bool was_alone = size.is_alone != size.tries_other;
  (was_alone ? size.alone : size.team).Add(newest, ++size.steps);
  if (!was_alone) {
    size.best_team = size.best_team == 0 ? newest : std::min(size.best_team, newest);
    size.team_share += kNewest * (processor_seconds / (threads_ * seconds) - size.team_share);
  }

  const double alone = size.alone.Median();
  const bool is_alone_better = alone > 0 && alone < kWorthATeam * size.team.Median();
  const bool has_changed = is_alone_better != size.is_alone;
  if (!has_changed && !size.tries_other) return;
  size.is_alone = is_alone_better;
  const double slowness = is_alone_better ? size.team.Median() / alone : alone / size.team.Median();
  const auto paid = static_cast<int64_t>(kDistanceOfSlowness * std::min<double>(slowness, kLastDistance));
  size.trial_distance =
      std::clamp(std::max(has_changed ? 0 : 2 * size.trial_distance, paid), kFirstDistance, kLastDistance);
  size.steps_to_trial = size.trial_distance;
}

}  // namespace longshort::models
