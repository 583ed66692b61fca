// The failure policy of both kinds of engine: what happens to a model that fails, to its worker, and to the work that
// it failed on. "A run" is a step of a language model, or a batch of a classifier.
//
// The model:
// - It is discarded when it throws, or when kMaxFailuresInARow consecutive runs fail (ModelHealth).
// - Its worker builds another one at once. If that fails, the worker takes no work and retries every kRebuildDelay
//   (ModelReplacement).
//
// The worker (WorkerProbation):
// - It is on probation from then until its model has passed a run, except when all workers of the engine would be.
// - On probation, it runs one piece of work at a time, and none that is on its last try. Otherwise a worker that fails
//   quickly would always be free first, and use up every try of a piece of work.
// - If the model of a worker on probation fails, it is discarded at once, and replaced kRebuildDelay later.
//
// The work (WorkFailures):
// - It is tried again alone, so that only the work that causes the failure fails again.
// - It ends with the model's error when it has failed too often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace longshort::core {

// Fewer than the tries of a piece of work, so that its last try uses another model.
inline constexpr int64_t kMaxFailuresInARow = 2;
inline constexpr absl::Duration kRebuildDelay = absl::Seconds(1);

// Decides whether a model is still used. Thread: its worker's.
class ModelHealth final {
 public:
  // Calls `run`, whose result should have `count` of these `values`, and returns its result. Errors: INTERNAL for any
  // failure; the message begins with `name`. If the model throws, it is discarded.
  template <typename Result, typename Run>
  auto RunModel(absl::string_view name, absl::Span<const float> Result::*values, int64_t count, const Run& run)
      -> decltype(run()) {
    try {
      decltype(run()) result = run();
      if (!result.ok()) return absl::InternalError(absl::StrCat(name, " failed: ", result.status().message()));
      const auto returned = static_cast<int64_t>(((*result).*values).size());
      if (returned == count) return result;
      return absl::InternalError(absl::StrCat(name, " returned ", returned, " numbers, not ", count));
    } catch (const std::exception& error) {
      broken_ = true;
      return absl::InternalError(absl::StrCat(name, " failed: ", error.what()));
    }
  }
  // The same for a part of a run that has no values.
  template <typename Run>
  absl::Status RunModel(absl::string_view name, const Run& run) {
    try {
      absl::Status status = run();
      return status.ok() ? status : absl::InternalError(absl::StrCat(name, " failed: ", status.message()));
    } catch (const std::exception& error) {
      broken_ = true;
      return absl::InternalError(absl::StrCat(name, " failed: ", error.what()));
    }
  }
  void OnFailure(bool on_probation) { broken_ |= ++failures_in_a_row_ == kMaxFailuresInARow || on_probation; }
  // A run passed. A run that only repeats tokens that had passed before does not count.
  void OnSuccess() { failures_in_a_row_ = 0; }

  // Whether the model is discarded.
  bool broken() const { return broken_; }

 private:
  int64_t failures_in_a_row_ = 0;
  bool broken_ = false;
};

// When a worker without a model tries to build one. Thread: its worker's.
class ModelReplacement final {
 public:
  // `on_probation`: whether the worker was on probation when its model was discarded at `now`.
  void OnModelDiscarded(bool on_probation, absl::Time now) { next_try_ = on_probation ? now + kRebuildDelay : now; }
  void OnRebuildFailed(absl::Time now) { next_try_ = now + kRebuildDelay; }

  absl::Time next_try() const { return next_try_; }

 private:
  absl::Time next_try_ = absl::InfinitePast();
};

// Counts the failed runs of one piece of work.
//
// Work that failed together with other work is suspect: it runs alone until a run has passed. For a sequence, a run
// that only reads earlier tokens again does not count.
//
// Thread: the one that owns the work.
class WorkFailures final {
 public:
  // The most failures after which the work is still tried; one more ends it.
  struct Limits {
    int64_t alone;    // in a row
    int64_t batched;  // batched with other work, since it last passed such a run
    int64_t in_all;
  };
  // A step is tried three times, because the machine may have caused the failure. In a failed step usually one sequence
  // is at fault. The limit also stops sequences that fail only when batched.
  static constexpr Limits kOfSequence = {.alone = 2, .batched = 8, .in_all = 10};
  // An item is batched with others at most once; after a failure it runs alone.
  static constexpr Limits kOfItem = {.alone = 2, .batched = 2, .in_all = 2};

  explicit WorkFailures(const Limits& limits) : limits_(limits) {}

  // A run with this work failed. `alone`: the run had no other work.
  void OnFailure(bool alone) {
    ++(alone ? alone_ : batched_);
    suspect_ |= !alone;
  }
  // A run with this work passed.
  void OnSuccess(bool alone) {
    suspect_ = false;
    alone_ = 0;
    if (!alone) batched_ = 0;
  }

  // Whether it failed when batched and has passed no run since. Then it must run alone.
  bool suspect() const { return suspect_; }
  bool any() const { return alone_ + batched_ > 0; }
  // Whether one more failure of the same kind ends it.
  bool on_last_try() const { return Reached(0); }
  // Whether the work must end.
  bool exhausted() const { return Reached(1); }

 private:
  bool Reached(int64_t beyond) const {
    return alone_ >= limits_.alone + beyond || batched_ >= limits_.batched + beyond ||
           alone_ + batched_ >= limits_.in_all + beyond;
  }

  Limits limits_;
  int64_t alone_ = 0;
  int64_t batched_ = 0;
  bool suspect_ = false;
};

// Which workers of an engine are on probation. Thread: not thread-safe; the owner's mutex guards it.
class WorkerProbation final {
 public:
  explicit WorkerProbation(int workers) : reliable_(workers, true) {}

  void OnModelDiscarded(int worker) { reliable_[worker] = false; }
  // The worker's model passed a run.
  void OnModelPassed(int worker) { reliable_[worker] = true; }

  bool IsOnProbation(int worker) const {
    return !reliable_[worker] && std::find(reliable_.begin(), reliable_.end(), true) != reliable_.end();
  }
  // Whether the worker may take work with these failures. A worker on probation must not take work on its last try.
  bool MayTake(int worker, const WorkFailures& failures) const {
    return !failures.on_last_try() || !IsOnProbation(worker);
  }

 private:
  std::vector<bool> reliable_;
};

}  // namespace longshort::core
