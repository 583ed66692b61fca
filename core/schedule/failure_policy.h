// What happens when a model fails: to the model, to its worker, and to the work that it failed with. Both kinds of
// engine follow it. "A run" is a step of a language model, or a batch of a classifier.
//
// The model:
// - It is given up when it throws, and when kMaxFailuresInARow runs in a row fail (ModelHealth).
// - Its worker gets another one at once. If there is none to be had, the worker takes no work, and tries again
//   kTryAgainAfter later (ModelReplacement).
//
// The worker (WorkerProbation):
// - It is on probation from then on, until its model has passed a run, unless all workers of the engine would be.
// - While it is on probation, it runs one piece of work at a time, and none whose next failure would be its last. Else
//   a worker that fails fast would be free before all others, and have every try of a piece of work.
// - If the model of a worker on probation fails, it is given up at once, and the next one comes kTryAgainAfter later.
//
// The work (WorkFailures):
// - It is tried again, alone, for whoever is the cause should fail alone.
// - It is ended with the model's error when it has failed too often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace longshort::core {

// Fewer than the tries of a piece of work, so that its last try is on another model.
inline constexpr int64_t kMaxFailuresInARow = 2;
inline constexpr absl::Duration kTryAgainAfter = absl::Seconds(1);

// Whether one model is still to be used. Thread: its worker's.
class ModelHealth final {
 public:
  // What a run returns that is to give so many logits. Errors: INTERNAL, whatever went wrong; its message begins with
  // `name`. A model that throws is given up.
  template <typename Run>
  auto RunModel(absl::string_view name, int64_t logits, const Run& run) -> decltype(run()) {
    try {
      decltype(run()) result = run();
      if (!result.ok()) return absl::InternalError(absl::StrCat(name, " failed: ", result.status().message()));
      if (static_cast<int64_t>(result->logits.size()) == logits) return result;
      return absl::InternalError(absl::StrCat(name, " returned logits of another size than was asked for"));
    } catch (const std::exception& error) {
      broken_ = true;
      return absl::InternalError(absl::StrCat(name, " failed: ", error.what()));
    }
  }
  void OnFailure(bool on_probation) { broken_ |= ++failures_in_a_row_ == kMaxFailuresInARow || on_probation; }
  // A run passed. One that only repeats what had passed before does not count.
  void OnSuccess() { failures_in_a_row_ = 0; }

  // Whether it is given up.
  bool broken() const { return broken_; }

 private:
  int64_t failures_in_a_row_ = 0;
  bool broken_ = false;
};

// When a worker without a model tries to get one. Thread: its worker's.
class ModelReplacement final {
 public:
  // `on_probation`: the worker was, when its model was given up at `now`.
  void OnModelGivenUp(bool on_probation, absl::Time now) { next_try_ = on_probation ? now + kTryAgainAfter : now; }
  void OnRebuildFailed(absl::Time now) { next_try_ = now + kTryAgainAfter; }

  absl::Time next_try() const { return next_try_; }

 private:
  absl::Time next_try_ = absl::InfinitePast();
};

// How often runs failed that one piece of work was in.
//
// Those who were in a failed run together are suspect: each runs alone until it has passed one. For a sequence, a run
// in which it only reads again what it had read does not count.
//
// Thread: the one that has the work.
class WorkFailures final {
 public:
  // How many failures are forgiven.
  struct Limits {
    int64_t alone;       // in a row
    int64_t in_company;  // since it last passed a run in company
    int64_t in_all;
  };
  // A sequence's step is tried three times: a failure may be the machine's. Those who fail together are innocent but
  // for one; steps that fail only in company must come to an end all the same.
  static constexpr Limits kOfSequence = {.alone = 2, .in_company = 8, .in_all = 10};
  // An item is in a batch with others once at the most: then it is alone.
  static constexpr Limits kOfItem = {.alone = 2, .in_company = 2, .in_all = 2};

  explicit WorkFailures(const Limits& limits) : limits_(limits) {}

  // A run that the work was in failed. `alone`: nothing else was in it.
  void OnFailure(bool alone) {
    ++(alone ? alone_ : in_company_);
    suspect_ |= !alone;
  }
  // One passed.
  void OnSuccess(bool alone) {
    suspect_ = false;
    alone_ = 0;
    if (!alone) in_company_ = 0;
  }

  // Whether it failed in company and has not passed a run since: it is to run alone.
  bool suspect() const { return suspect_; }
  bool any() const { return alone_ + in_company_ > 0; }
  // Whether it is to be ended with the next failure, if that is like the last.
  bool on_last_try() const { return Reached(0); }
  // Whether it is to be ended.
  bool unmeetable() const { return Reached(1); }

 private:
  bool Reached(int64_t beyond) const {
    return alone_ >= limits_.alone + beyond || in_company_ >= limits_.in_company + beyond ||
           alone_ + in_company_ >= limits_.in_all + beyond;
  }

  Limits limits_;
  int64_t alone_ = 0;
  int64_t in_company_ = 0;
  bool suspect_ = false;
};

// Which of an engine's workers are on probation. Thread: none of its own; the owner's mutex guards it.
class WorkerProbation final {
 public:
  explicit WorkerProbation(int workers) : reliable_(workers, true) {}

  void OnModelGivenUp(int worker) { reliable_[worker] = false; }
  // The worker's model passed a run.
  void OnModelPassed(int worker) { reliable_[worker] = true; }

  bool IsOnProbation(int worker) const {
    return !reliable_[worker] && std::find(reliable_.begin(), reliable_.end(), true) != reliable_.end();
  }
  // Whether the worker may take work with these failures: a worker on probation does not get its last try.
  bool MayTake(int worker, const WorkFailures& failures) const {
    return !failures.on_last_try() || !IsOnProbation(worker);
  }

 private:
  std::vector<bool> reliable_;
};

}  // namespace longshort::core
