// A worker of a language model's engine: a thread, a replica of the model with its cache, and the loop that drives it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/cache/paged_cache.h"
#include "core/engine/clock.h"
#include "core/engine/engine.h"
#include "core/engine/request_queue.h"
#include "core/engine/step_loop.h"
#include "core/session/session_store.h"
#include "models/model.h"

namespace longshort {

// Sleeps while there is nothing to do. Sessions whose time is over end soon, whether it sleeps or works. When its
// model is given up (StepLoop::broken), what ran goes back to the queue, for this worker or another, and it gets a new
// replica with an empty cache; a second later, if the one that is given up was on trial (RequestQueue), and again every
// second as long as there is none to be had. Meanwhile it takes no work.
//
// Ends when the queue is closed and empty.
class LanguageModelWorker final {
 public:
  struct Options {
    // Of one step; 0 takes what the model was loaded for.
    int threads = 0;
    StepLoop::Options step_loop = {};
  };
  // Is given the worker's cache between two steps, or null if the worker has ended, or has none at the time.
  using CacheTask = std::function<void(PagedCache*)>;

  // The arguments must outlive the worker; `end_now`, once set, has it end what is left instead of running it.
  // Errors: those of LanguageModel::Replicate and StepLoop::Create, RESOURCE_EXHAUSTED if no thread is to be had.
  static absl::StatusOr<std::unique_ptr<LanguageModelWorker>> Start(const LanguageModel& model, RequestQueue& queue,
                                                                    SessionStore& sessions, const Clock& clock,
                                                                    EngineObserver& observer,
                                                                    const std::atomic<bool>& end_now,
                                                                    const Options& options);
  // REQUIRES: the queue is closed, and will be empty.
  ~LanguageModelWorker();

  // Has the task run soon: by the worker's thread, or, once that has ended, by this one. Thread-safe.
  void Post(CacheTask task);

  // Whether it has ended, by `deadline` at the latest; never waits at all if that has passed. Thread-safe.
  bool WaitUntilEnded(absl::Time deadline);

 private:
  LanguageModelWorker(const LanguageModel& model, RequestQueue& queue, SessionStore& sessions, const Clock& clock,
                      EngineObserver& observer, const std::atomic<bool>& end_now, const Options& options)
      : prototype_(model),
        queue_(queue),
        sessions_(sessions),
        clock_(clock),
        observer_(observer),
        end_now_(end_now),
        options_(options) {}

  void Work();
  // One round of whatever there is. Returns whether there is more to do at once.
  bool RunRound();
  // Gives the worker a model and its cache.
  absl::Status Build();
  // Its model is given up.
  void GiveUp();
  // There will be no model for a while.
  void GoWithoutModel();
  // Has lost its model: tries to build another one, and ends what nobody waits for. Returns whether it has one.
  bool Rebuild();
  void RunTasks();
  // Has nothing to do: sleeps until there may be something, or the next session ends. After a while the model rests.
  void Sleep(int64_t changes_seen);
  // Returns when the next session ends.
  absl::Time EndExpiredSessions();

  const LanguageModel& prototype_;
  RequestQueue& queue_;
  SessionStore& sessions_;
  const Clock& clock_;
  EngineObserver& observer_;
  const std::atomic<bool>& end_now_;
  const Options options_;

  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<StepLoop> loop_;  // null while there is no model to be had
  absl::Time next_try_ = absl::InfinitePast();
  absl::Time look_for_ended_sessions_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfiniteFuture();
  bool resting_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CacheTask> tasks_;  // guarded by mutex_
  bool ended_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace longshort
