// A worker of a language model's engine: a thread that drives a replica of the model.
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
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/language_model_replica.h"
#include "core/generation/request_queue.h"
#include "core/requests/language_model_engine.h"
#include "core/session/session_store.h"
#include "models/model.h"

namespace longshort {

// Sleeps while there is nothing to do. Sessions whose time is over end soon, whether it sleeps or works. Ends when the
// queue is over: until then it may have to take what another worker cannot end.
class LanguageModelWorker final {
 public:
  using Options = LanguageModelReplica::Options;
  // Is given the worker's cache between two steps, or null if the worker has ended, or has none at the time.
  using CacheTask = std::function<void(PagedCache*)>;

  // The arguments must outlive the worker; `end_now`, once set, has it end what is left instead of running it.
  // Errors: those of LanguageModel::Replicate and StepLoop::Create, RESOURCE_EXHAUSTED if no thread is to be had.
  static absl::StatusOr<std::unique_ptr<LanguageModelWorker>> Start(const LanguageModel& model, RequestQueue& queue,
                                                                    SessionStore& sessions, const Clock& clock,
                                                                    LanguageModelEngineObserver& observer,
                                                                    const std::atomic<bool>& end_now,
                                                                    const Options& options);
  // REQUIRES: the queue is closed, and will be over.
  ~LanguageModelWorker();

  // Has the task run soon: by the worker's thread, or, once that ends, by this one. Thread-safe.
  void Post(CacheTask task);

  // Whether it has ended, by `deadline` at the latest; never waits at all if that has passed. Thread-safe.
  bool WaitUntilEnded(absl::Time deadline);

 private:
  LanguageModelWorker(const LanguageModel& model, RequestQueue& queue, SessionStore& sessions, const Clock& clock,
                      LanguageModelEngineObserver& observer, const std::atomic<bool>& end_now, const Options& options)
      : queue_(queue),
        sessions_(sessions),
        clock_(clock),
        end_now_(end_now),
        replica_(model, queue, clock, observer, options) {}

  void Work();
  void RunTasks();
  // Has nothing to do: sleeps until there may be something, or the next session ends. After a while the model rests.
  void Sleep(int64_t changes_seen);
  // Returns when the next session ends.
  absl::Time EndExpiredSessions();

  RequestQueue& queue_;
  SessionStore& sessions_;
  const Clock& clock_;
  const std::atomic<bool>& end_now_;

  LanguageModelReplica replica_;
  absl::Time look_for_ended_sessions_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfiniteFuture();
  bool resting_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CacheTask> tasks_;  // guarded by mutex_
  bool takes_tasks_ = true;      // guarded by mutex_, but for the worker's thread, which alone changes it
  bool ended_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace longshort
