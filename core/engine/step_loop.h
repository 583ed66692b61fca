// What a worker does, one step at a time: which requests run, what each reads in the next step, and how they end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cache/paged_cache.h"
#include "core/engine/clock.h"
#include "core/engine/engine.h"
#include "core/engine/request_queue.h"
#include "core/engine/sequence.h"
#include "core/schedule/step_planner.h"
#include "models/model.h"

namespace longshort {

// Requests are admitted in the order of the queue while there is a stream free and the cache has room for all that the
// first can ever need (PagedCache); one that must wait for room is not overtaken. A request whose prompt begins with
// tokens that were read before begins behind them. Every step serves what runs as core/schedule/step_planner.h says:
// those that decode, and pieces of the prompts of the others; so they join and leave at every step.
//
// A step of the model that fails, or throws, ends nobody: its requests go on from their tokens, as far as the cache
// does not have their rows. Whoever may have caused it runs alone until it has passed a step; a request that keeps
// failing alone, or whatever company it has, is ended with INTERNAL.
//
// Thread: one worker's thread calls it, except state(). No lock is held while a listener or the observer is called.
class StepLoop {
 public:
  struct Options {
    // Sequences that run at once.
    int64_t max_streams = 16;
    // What a step is made of; its max_rows * V floats are the logits' memory.
    StepPlanner::Options steps = {};
    // What the cache may take, shared as core/cache/cache_capacity.h says; its memory is taken as it is used. 0: what
    // max_streams sequences of any length need.
    int64_t cache_bytes = 0;
  };

  // Gives the model its cache. All arguments must outlive the loop.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if there is no memory for the cache.
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(LanguageModel& model, RequestQueue& queue, const Clock& clock,
                                                          EngineObserver& observer, const Options& options);

  // Ends what nobody waits for any more, admits what can be, and runs one step of all there is.
  // Returns whether something is left to do.
  bool RunOnce();

  // Ends all that runs or waits with `status`.
  void EndAll(const absl::Status& status);

  // As it was after the last step, and the queue as it is now. Thread-safe.
  EngineState state() const;

  // Errors: INTERNAL if pages were lost or given out twice.
  absl::Status CheckInvariants() const { return cache_->CheckInvariants(); }

  // Whether a request for so many tokens can ever be admitted. Thread-safe. Errors: as PagedCache::CheckFits.
  absl::Status CheckFits(int64_t most_tokens) const { return cache_->CheckFits(most_tokens); }

 private:
  struct EndedJob {
    std::unique_ptr<Job> job;
    absl::Status status;
  };

  StepLoop(LanguageModel& model, RequestQueue& queue, const Clock& clock, EngineObserver& observer,
           const Options& options, std::unique_ptr<PagedCache> cache);

  void EndAbandoned();
  void Admit();
  // Whether next_ is one that may run: takes it from the queue if there is none, and ends those that need not.
  bool NextIsReady();
  // OK if a job is worth starting; otherwise why it is to be ended with this.
  absl::Status WhyNotStarted(const Job& job) const;
  void Start(std::unique_ptr<Job> job);
  // Gives a job that was started its sequence, or ends it.
  void Resume(std::unique_ptr<Job> job);
  // Finds the job a place in the cache: where its session was parked, behind tokens that are there, or at the begin.
  absl::StatusOr<std::unique_ptr<CachedSequence>> Enter(const Job& job);
  // The session of a complete job goes on from here, with its pages parked if they can be.
  void KeepSession(Sequence& sequence);
  // Decides how many tokens each sequence reads in this step.
  void PlanPieces();
  void Step();
  // Runs slices_. Errors: INTERNAL, whatever went wrong: the slices are right.
  absl::StatusOr<StepResult> RunModel();
  // Says what the step took, to those who plan and predict, and to the jobs that were in it.
  void Account(absl::Duration step);
  // The step failed: its jobs enter the cache again, or are ended.
  void Recover(const absl::Status& failure);
  // Gives each sequence its rows of the logits; those that are complete leave.
  void Deliver(absl::Span<const float> logits);

  // Moves a sequence's job to ended_ and gives back its pages.
  void End(std::unique_ptr<Sequence> sequence, absl::Status status);
  void EndRunning(const absl::Status& status);
  void PublishState();
  // After the pages are free and the state tells so.
  void TellEnded();

  LanguageModel& model_;
  RequestQueue& queue_;
  const Clock& clock_;
  EngineObserver& observer_;
  const Options options_;
  const std::unique_ptr<PagedCache> cache_;

  std::unique_ptr<Job> next_;  // the first of the queue, which waits for room in the cache
  std::vector<std::unique_ptr<Sequence>>
      running_;  // in the order of admission; after cache_, where their pages go back
  StepPlanner planner_;
  std::vector<size_t> planned_;                     // indices of running_ that may be in this step
  std::vector<StepPlanner::Candidate> candidates_;  // [planned]
  absl::Span<const int64_t> pieces_;                // [planned] tokens to read in this step; 0 sits it out
  std::vector<Slice> slices_;                       // of those that do not
  std::vector<EndedJob> ended_;                     // their listeners are told at the end of the step

  mutable std::mutex state_mutex_;
  EngineState state_;  // guarded by state_mutex_; queued_requests counts next_ only
};

}  // namespace longshort
