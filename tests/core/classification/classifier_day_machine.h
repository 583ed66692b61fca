// A classifier's engine with its own threads, whose batches and preparations take the time of a fake clock: they wait
// in the model, and in the preparation, until the simulated day has come to their ends.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/schedule/fair_pool.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/simulated_work.h"

namespace longshort::core {

// What a batch takes, and for each token or pixel of its items.
inline constexpr absl::Duration kFixedRun = absl::Milliseconds(600);
inline constexpr absl::Duration kRunOfUnit = absl::Milliseconds(40);
// How often the engine runs the batch of an item.
inline constexpr int64_t kMaxTries = 3;

// An item of a call: what is asked, what is heard, and what the machine saw of it.
struct ItemCall {
  RequestContext context;
  int32_t id = 0;     // no other item's
  int64_t units = 0;  // tokens, or pixels
  // Makes its batches fail; cannot be prepared.
  bool poisonous = false;
  bool broken = false;
  // Zero for what is an item already.
  absl::Duration preparation;

  bool ended = false;
  absl::Time submitted;
  absl::Time ended_at;
  absl::StatusOr<ItemResult> scores = absl::UnknownError("not heard yet");

  bool prepared = false;
  bool in_batch = false;
  int64_t tries = 0;
  int64_t failures = 0;
  absl::Duration worker_time;  // its part of its batches

  bool OnLastTry() const { return failures == kMaxTries - 1; }
  // Its part of the batch's time, without the fixed part.
  absl::Duration Run() const { return kRunOfUnit * units; }
  // What the fake model makes of it.
  models::ClassifierItem Item() const;
};

// One thread, the day's, has it. Calls may be read by that one while all is settled.
class ClassifierDayMachine final {
 public:
  ClassifierDayMachine(FakeClock& clock, const DynamicBatchingEngine::Options& options);
  ~ClassifierDayMachine();

  // As ClassifierEngine::Classify. The bytes of an item are its id, so the sum of the waiting bytes identifies the
  // waiting items. REQUIRES: settled. Settles.
  absl::Status Send(const std::shared_ptr<ItemCall>& call, absl::Duration work_until_prepared);
  // Those that have ended since the last time.
  std::vector<std::shared_ptr<ItemCall>> TakeEnded();

  // Waits until the engine's threads have done all that they can now: fails the test if they do not, for then one of
  // them sleeps while there is work for it.
  void Settle();

  // When a batch or a preparation ends next.
  absl::Time next() const;
  // Lets end what is due by now, one after the other, and settles.
  void EndDue();
  // When a worker that has no replica tries again: as soon as something comes then, for its own clock is another.
  absl::Time next_replica() const;

  // The next batch fails with an exception; takes longer.
  void ThrowNext();
  void StallNext(absl::Duration stall);
  // There are no replicas of the model until then.
  void RefuseReplicasUntil(absl::Time time);
  // A new engine takes the place of the old one, which ends what it has.
  void Replace();
  absl::Time last_forced_end() const { return last_forced_end_; }

  // REQUIRES: settled.
  ClassifierEngineState state() const { return engine_->state(); }
  // Whether a worker could take more.
  bool has_idle_worker() const;

  struct Counts {
    int64_t batches = 0;
    int64_t largest_batch = 0;
    int64_t failed = 0;
    int64_t replicas = 0;  // asked for
    int64_t max_waiting = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  class Listener;
  // A worker that has run a batch, as the engine should see it.
  struct Worker {
    bool running = false;
    int64_t failures_in_a_row = 0;
    // Its model was given up, and the next one has not run a batch yet.
    bool failing = false;
    // It asks for a replica then, if it has none: so it should when that has come.
    absl::Time next_replica = absl::InfiniteFuture();
  };

  int64_t WorkerCount() const { return static_cast<int64_t>(options_.workers.size()); }
  std::unique_ptr<DynamicBatchingEngine> MakeEngine();
  absl::Status RunBatch(absl::Span<const models::ClassifierItem* const> items);
  absl::StatusOr<models::ClassifierItem> Prepare(ItemCall& call);
  absl::Status Replicate();
  void Hear(const std::shared_ptr<ItemCall>& call, absl::StatusOr<ItemResult> scores);
  // The engine ends what it has.
  void End();

  // With the mutex held:
  bool Settled() const;
  void Judge(Worker& worker, bool failed, bool threw);
  int64_t Down() const;
  bool OnProbation(const Worker& worker) const;
  // Whether a worker that runs nothing should take one of the items, of which so many are ready.
  bool HasWorkForIdle(int64_t ready) const;

  FakeClock& clock_;
  const DynamicBatchingEngine::Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  SimulatedWork batches_;
  SimulatedWork preparations_;
  std::map<int32_t, std::shared_ptr<ItemCall>> calls_;  // accepted, not ended
  std::vector<std::shared_ptr<ItemCall>> ended_;
  int64_t waiting_ids_ = 0;  // of calls_ that are in no batch, added up
  int64_t unprepared_ = 0;   // of those, that are no items yet
  std::map<std::thread::id, Worker> workers_;
  bool throws_ = false;
  bool ending_ = false;  // the engine
  absl::Duration stall_;
  absl::Time no_replicas_until_ = absl::InfinitePast();
  Counts counts_;

  absl::Time last_forced_end_ = absl::InfinitePast();
  std::shared_ptr<FairPool> pool_;
  std::unique_ptr<DynamicBatchingEngine> engine_;
};

}  // namespace longshort::core
