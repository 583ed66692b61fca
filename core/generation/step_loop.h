// One worker's loop: decides which requests run, what each reads in the next step, and how they end.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/helper_threads.h"
#include "core/generation/request_queue.h"
#include "core/generation/sequence.h"
#include "core/generation/worker_states.h"
#include "core/requests/language_model_engine.h"
#include "core/schedule/step_planner.h"
#include "models/model.h"

namespace longshort::core {

// A round (RunOnce):
//
//   end abandoned requests -> park paused ones -> admit -> step -> notify the listeners of those that ended
//
// Admission. Requests enter in the order of the queue. The first one enters if
// - a stream is free;
// - the cache has room for all pages that it can ever need (PagedCache);
// - it would be read soon (core/schedule/step_planner.h): a stream that is not being read is wasted.
// While it waits, only requests that come before it in the order overtake it. Long prompts are an exception: only a
// limited number of a client, of a priority and those above it, are read at once, and one more lets the requests behind
// it pass.
// A request whose prompt begins with cached tokens starts after them.
// If there is no room, it displaces a running request of a client that has more than its share (RequestQueue). The
// pages of that one are parked, and it waits in the queue for its next turn.
//
// Steps. Each step serves all decoding requests, and slices of the prompts of the others
// (core/schedule/step_planner.h). So requests join and leave at every step. A request leaves when its client does not
// read. Its pages are parked, and it waits in the queue until the client reads again.
//
// A device that runs steps while the worker does something else (models::LanguageModel::BeginStep) gets the next step
// before the tokens of the last one are sampled. The next step has the requests that do not wait for a token:
//
//   device   | step 1: half of the streams | step 2: the other half | step 3: the first half | ...
//   worker                                 | samples for step 1     | samples for step 2     | ...
//
// Each step reads all weights, so the streams are divided only if sampling for all of them takes longer than that.
// Otherwise steps overlap only while no request decodes.
//
// Failures (core/schedule/failure_policy.h):
// - When a step fails, its requests that have failed too often end with INTERNAL. Each other request enters the cache
//   again, reads the tokens that the cache does not have, and continues.
// - A suspect request runs alone when it reaches new tokens.
// - A model that throws, or fails twice in a row, is discarded: broken(). All running requests return to the queue, and
//   the owner creates another loop with a new model.
// - While the worker is on probation (WorkQueue), it runs one request at a time, and its model is discarded at
//   the first failure.
//
// Thread: one worker's thread. No lock is held while a listener or the observer is called.
class StepLoop {
 public:
  struct Options {
    // The worker's number in the queue.
    int worker = 0;
    // Maximum number of running sequences.
    int64_t max_streams = 16;
    // The composition of a step; its max_rows * V floats are the logits' memory.
    StepPlanner::Options steps = {};
    // Size of the cache, divided as core/cache/cache_grid.h says; its memory is committed as it is used. 0: the size
    // that max_streams sequences of any length need.
    int64_t cache_bytes = 0;
    // Threads that sample, besides the worker's own: for a device that does not need the processor's threads.
    int64_t sampling_threads = 0;
  };

  // The size of the cache for a model with these options. Errors: INVALID_ARGUMENT if it is too small for a sequence.
  static absl::StatusOr<models::CachePages> CacheFor(const models::LanguageModelInfo& model, const Options& options);

  // Creates the model's cache. Notifies `states` and their observer. All arguments must outlive the loop.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if there is no memory for the cache.
  static absl::StatusOr<std::unique_ptr<StepLoop>> Create(models::LanguageModel& model, RequestQueue& queue,
                                                          const Clock& clock, WorkerStates& states,
                                                          const Options& options);

  // Ends abandoned requests, admits others, and runs one step. Returns whether there is more to do now. REQUIRES: not
  // broken().
  bool RunOnce();
  // Whether the model is discarded; then no request runs.
  bool broken() const { return health_.broken(); }

  // Ends all running and waiting requests with `status`.
  void EndAll(const absl::Status& status);

  // Whether no request runs.
  bool idle() const { return running_.empty(); }

  // The current state, without the queue.
  LanguageModelEngineState state() const;

  // Errors: INTERNAL if a page is lost or has two owners.
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
  // Parks the jobs of clients that do not read.
  void ParkPaused();
  // Parks the pages of a running sequence, and returns its job.
  std::unique_ptr<Job> Park(std::unique_ptr<Sequence> sequence);
  RequestQueue::Taker Taker() const;
  // Parks a running job of a client with more than its share, if a waiting job needs its room. Returns whether it did.
  bool Displace(const PromptsAhead& prompts);
  // Decides about the next job, given the prompts that are being read.
  RequestQueue::Decision Decide(const Job& next, const PromptsAhead& prompts);
  int64_t TokensToRead(const Job& job) const;
  // The unread prompt tokens of the running sequences, and the prompt rows of the next step.
  PromptsAhead PromptsBeingRead() const;
  // OK if a job is worth starting; otherwise the status to end it with.
  absl::Status CheckWorthStarting(const Job& job) const;
  void Start(std::unique_ptr<Job> job);
  // Ends a job without tokens to read: a document of one token.
  void EndComplete(std::unique_ptr<Job> job);
  // Creates the sequence of a started job, or ends the job.
  void Enter(std::unique_ptr<Job> job);
  // The session of a complete job continues from here; its pages are parked if possible.
  void KeepSession(Sequence& sequence);
  // A sequence's part of a step that has begun.
  struct Part {
    Sequence* sequence = nullptr;
    size_t candidate = 0;  // of the planner
    int64_t tokens = 0;
    int64_t logit_rows = 0;
  };
  // What becomes of a part's logits.
  struct Sampling {
    absl::Span<const float> logits;
    bool only_restored = false;  // the rows' tokens had been read before
    absl::Status status;
  };
  struct BegunStep {
    StepPlanner::PlannedStep planned;
    std::vector<Part> parts;  // in the order of running_, which has all of their sequences
    int64_t rows = 0;
    int64_t logit_rows = 0;
    absl::Time begun;
  };

  // Begins a step or finishes the oldest one that has begun, so that the device always has the next one.
  void Step();
  // Whether a step may begin now, beside those that have.
  bool MayBegin() const;
  // Decides how many tokens each sequence reads in the next step. Returns whether any may read.
  bool PlanPieces();
  // Begins a step of the sequences that are in none. Returns whether it did.
  bool BeginStep();
  // Waits for the oldest step.
  void FinishStep();
  // A step ended; `time` is what it took.
  void EndStep(BegunStep step, const absl::StatusOr<models::StepResult>& result, absl::Duration time);
  // Waits for all steps that have begun, and drops their results.
  void DropSteps();
  // Calls `use` with the owner of each part's sequence, and the part. `use` may move the sequence away; then it is no
  // longer running.
  void ForParts(BegunStep& step, absl::FunctionRef<void(std::unique_ptr<Sequence>&, const Part&)> use);
  // Reports the time of a step to the planner, the estimates, and the jobs that took part.
  void RecordStep(const BegunStep& step, absl::Duration time, bool failed);
  // After a failed step: its jobs enter the cache again, return to the queue, or end.
  void Recover(BegunStep& step, const absl::Status& failure);
  // Returns all running jobs to the queue.
  void ReturnRunning();
  // Gives each sequence its rows of the logits; removes complete ones.
  void Deliver(BegunStep& step, absl::Span<const float> logits);
  int64_t DecodingSequences() const;
  // Whether sampling for all decoding sequences takes longer than a step's weights.
  bool DividesStreams() const;

  // Moves a sequence's job to ended_ and releases its pages.
  void End(std::unique_ptr<Sequence> sequence, absl::Status status);
  void EndRunning(const absl::Status& status);
  // Frees the pages that the job itself has parked with this worker.
  void RemoveParkedHere(Job& job);
  // Called after the pages are free and the state is reported.
  void NotifyEnded();

  models::LanguageModel& model_;
  RequestQueue& queue_;
  const Clock& clock_;
  WorkerStates& states_;
  const Options options_;
  const int64_t streams_of_any_length_;  // that may run at once
  int64_t max_long_prompts_ = 1;         // PromptsAhead::MaxLong
  const std::unique_ptr<PagedCache> cache_;

  // In the order of their jobs' numbers. Declared after cache_, because they release their pages to it.
  std::vector<std::unique_ptr<Sequence>> running_;
  StepPlanner planner_;
  std::deque<BegunStep> begun_;                     // oldest first, at most the model's steps_at_once()
  absl::Duration sampling_;                         // of a row of logits, by the last steps
  std::vector<size_t> planned_;                     // indices of running_ that may take part in this step
  std::vector<StepPlanner::Candidate> candidates_;  // [planned]
  absl::Span<const int64_t> pieces_;                // [planned] tokens to read in this step; 0 skips it
  std::vector<models::Slice> slices_;               // of those that take part
  std::vector<EndedJob> ended_;                     // their listeners are notified at the end of the step
  std::unique_ptr<HelperThreads> helpers_;          // null: the worker samples alone
  ModelHealth health_;
};

}  // namespace longshort::core
