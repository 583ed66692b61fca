// What a worker does, one step at a time: which requests run, what each reads in the next step, and how they end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/request_queue.h"
#include "core/generation/sequence.h"
#include "core/generation/worker_states.h"
#include "core/requests/language_model_engine.h"
#include "core/schedule/prompts_ahead.h"
#include "core/schedule/step_planner.h"
#include "models/model.h"

namespace longshort::core {

// A round (RunOnce):
//
//   end what nobody waits for -> park what is paused -> admit -> step -> tell those that ended
//
// Admission. Requests enter in the order of the queue. The first one enters if
// - a stream is free;
// - the cache has room for all that it can ever need (PagedCache);
// - it would be read soon (core/schedule/prompts_ahead.h): a stream that only waits to be read is of use to nobody.
// While it must wait, only what comes before it in the order overtakes it. Long prompts are the exception: only so many
// of their priority or a higher one are read at once, and one more lets pass what is behind it.
// A request whose prompt begins with tokens that were read before begins behind them.
//
// Steps. Each step serves the requests that decode, and pieces of the prompts of the others
// (core/schedule/step_planner.h). So requests join and leave at every step.
// A request whose client takes nothing leaves. Its pages are parked, and it waits in the queue until the client takes
// something again.
//
// Failures (core/schedule/failure_policy.h):
// - Of the requests in a step that fails, those that are unmeetable are ended with INTERNAL. Each other one enters the
//   cache again, reads what the cache does not have, and goes on.
// - While a request is suspect, it runs alone once it comes to something new.
// - A model that throws, or fails twice in a row, is given up: broken(). All that ran goes back to the queue, and the
//   loop is to be made anew with another model.
// - While the worker is on probation (WorkQueue), it runs one request at a time, and its model is given up at the first
//   failure.
//
// Thread: one worker's thread. No lock is held while a listener or the observer is called.
class StepLoop {
 public:
  struct Options {
    // The number that the queue knows its worker by.
    int worker = 0;
    // Sequences that run at once.
    int64_t max_streams = 16;
    // What a step is made of; its max_rows * V floats are the logits' memory.
    StepPlanner::Options steps = {};
    // What the cache may take, shared as core/cache/cache_pages.h says; its memory is taken as it is used. 0: what
    // max_streams sequences of any length need.
    int64_t cache_bytes = 0;
  };

  // The cache that a model gets by these options. Errors: INVALID_ARGUMENT if it is too small for a sequence.
  static absl::StatusOr<models::CachePages> CacheFor(const models::LanguageModelInfo& model, const Options& options);

  // Gives the model its cache. `states`, and their observer, hear what it does. All arguments must outlive the loop.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if there is no memory for the cache.
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(models::LanguageModel& model, RequestQueue& queue,
                                                          const Clock& clock, WorkerStates& states,
                                                          const Options& options);

  // Ends what nobody waits for any more, admits what can be, and runs one step of all there is.
  // Returns whether there is more to do now. REQUIRES: not broken().
  bool RunOnce();
  // Whether the model is given up; nothing runs then.
  bool broken() const { return health_.broken(); }

  // Ends all that runs or waits with `status`.
  void EndAll(const absl::Status& status);

  // Whether nothing runs.
  bool idle() const { return running_.empty(); }

  // As it is now, without the queue.
  LanguageModelEngineState state() const;

  // Errors: INTERNAL if pages were lost or given out twice.
  absl::Status CheckInvariants() const { return cache_->CheckInvariants(); }

  PagedCache& cache() { return *cache_; }

 private:
  struct EndedJob {
    std::unique_ptr<Job> job;
    absl::Status status;
  };

  StepLoop(models::LanguageModel& model, RequestQueue& queue, const Clock& clock, WorkerStates& states,
           const Options& options, const models::CachePages& capacity, std::unique_ptr<PagedCache> cache);

  void EndAbandoned();
  void Admit();
  // Parks what need not go on now.
  void SetAsidePaused();
  RequestQueue::Taker Taker() const;
  // About the next job, beside the prompts that are being read.
  RequestQueue::Decision Decide(const Job& next, const PromptsAhead& prompts);
  int64_t TokensToRead(const Job& job) const;
  // What those that run have still to read, and how much of it the next step can.
  PromptsAhead PromptsBeingRead() const;
  // OK if a job is worth starting; otherwise why it is to be ended with this.
  absl::Status WhyNotStarted(const Job& job) const;
  void Start(std::unique_ptr<Job> job);
  // Ends a job that has nothing to read: a document of one token.
  void EndComplete(std::unique_ptr<Job> job);
  // Gives a job that was started its sequence, or ends it.
  void Enter(std::unique_ptr<Job> job);
  // The session of a complete job goes on from here, with its pages parked if they can be.
  void KeepSession(Sequence& sequence);
  // Decides how many tokens each sequence reads in this step.
  void PlanPieces();
  void Step();
  // Says what the step took, to those who plan and predict, and to the jobs that were in it.
  void Account(absl::Duration step, bool failed);
  // The step failed: its jobs enter the cache again, or go back to the queue, or are ended.
  void Recover(const absl::Status& failure);
  // All that runs goes back to the queue.
  void ReturnRunning();
  // Gives each sequence its rows of the logits; those that are complete leave.
  void Deliver(absl::Span<const float> logits);

  // Moves a sequence's job to ended_ and gives back its pages.
  void End(std::unique_ptr<Sequence> sequence, absl::Status status);
  void EndRunning(const absl::Status& status);
  // Frees what the job itself has parked with this worker, if it has.
  void ForgetParkedHere(Job& job);
  // After the pages are free and the state tells so.
  void NotifyEnded();

  models::LanguageModel& model_;
  RequestQueue& queue_;
  const Clock& clock_;
  WorkerStates& states_;
  LanguageModelEngineObserver& observer_;
  const Options options_;
  const int64_t max_long_prompts_;  // of a priority and those above it, that are read at once
  const std::unique_ptr<PagedCache> cache_;

  // In the order of their jobs' numbers; after cache_, where their pages go back.
  std::vector<std::unique_ptr<Sequence>> running_;
  StepPlanner planner_;
  absl::Time step_begun_;                           // of the one that runs, or ran last
  std::vector<size_t> planned_;                     // indices of running_ that may be in this step
  std::vector<StepPlanner::Candidate> candidates_;  // [planned]
  absl::Span<const int64_t> pieces_;                // [planned] tokens to read in this step; 0 sits it out
  std::vector<models::Slice> slices_;               // of those that do not
  std::vector<EndedJob> ended_;                     // their listeners are told at the end of the step
  ModelHealth health_;
};

}  // namespace longshort::core
