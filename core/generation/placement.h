// Which worker takes a language model's job, and which job makes room for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/generation/pending_jobs.h"
#include "core/requests/job.h"
#include "core/schedule/failure_policy.h"

namespace longshort::core {

// A worker that takes a job.
struct Taker {
  int worker = 0;
  int64_t running = 0;      // the number of its running jobs
  int64_t max_streams = 1;  // the maximum of it
  absl::Time now;
};

// Decides which worker takes a job:
// - A job whose rows are parked with a worker is left to that worker, unless that worker skipped it.
// - Any other job is left to the least busy workers (StreamEstimatorPerDevice::Load).
// - A job on its last try is left to workers that are not on probation (core/schedule/failure_policy.h).
// - No job is left to a worker that has no room, or that is stuck: busy, without taking work for kLongestStep.
//
// Thread: not thread-safe; the owner guards it.
class Placement final {
 public:
  // A step takes tens of milliseconds (--step-time). A worker whose step takes longer than this is stuck (a GPU that
  // hangs, a machine that swaps), and the other workers must not wait for it.
  static constexpr absl::Duration kLongestStep = absl::Milliseconds(250);

  // The arguments must outlive this.
  Placement(size_t workers, const PendingJobs& jobs, const WorkerProbation& probation)
      : jobs_(jobs), probation_(probation), workers_(workers) {}

  // The worker looks for a job, or was started.
  void Record(const Taker& taker);
  // The worker has taken a job.
  void OnTaken(int worker) { ++workers_[worker].running; }
  // The worker has room, or none until it takes work again. Returns whether other workers may take more jobs now.
  bool SetHasRoom(int worker, bool has_room);
  // Whether the worker left a job that would not have been read soon.
  void SetHasEnoughToRead(int worker, bool has_enough) { workers_[worker].has_enough_to_read = has_enough; }
  // A job's worker, which has its rows, skipped it or did not. Returns whether other workers may take it now.
  static bool SetSkippedByOwner(Job& job, bool skipped);

  // Whether this worker may take the job, instead of leaving it to another. No worker may while one searches its cache
  // for the job.
  bool IsFor(const Taker& taker, const Job& job) const;
  // The streams that waiting jobs will get when their workers look next.
  int64_t FreeStreams() const;

 private:
  struct Worker {
    int64_t running = 0;                          // at `last_seen`
    int64_t max_streams = 0;                      // 0 until it is known
    absl::Time last_seen = absl::InfinitePast();  // when it last looked for a job
    bool has_room = true;
    bool has_enough_to_read = false;
  };

  bool MayTake(int worker, const Job& job) const { return probation_.MayTake(worker, job.steps.failures); }
  // Whether the worker has room and is likely to take work soon.
  static bool CanTakeSoon(const Worker& worker, absl::Time now);
  // Whether the taker is busier than the other worker.
  bool IsBusierThan(const Taker& taker, int other) const;

  const PendingJobs& jobs_;
  const WorkerProbation& probation_;
  std::vector<Worker> workers_;
};

// Decides which running job makes room for a waiting one, so that a client that is alone may have all streams, and
// others need not wait until one of its jobs ends.
//
// A client's share is an equal part of the running jobs, at least 1. A job of a client below its share displaces the
// latest job of the client that runs the most, if that is more than a share. A job of a higher priority is displaced
// only for a client that runs nothing.
//
// After a displacement the worker keeps the room for clients below their share, for kKeepRoom. Many clients send their
// next request after each answer (a chat, a script): without that, the large client's next job would take the room
// between two of them, and each request would displace one again.
//
// Thread: not thread-safe; the owner guards it.
class Displacement final {
 public:
  static constexpr absl::Duration kKeepRoom = absl::Seconds(2);

  // `jobs` must outlive this.
  Displacement(size_t workers, const PendingJobs& jobs) : jobs_(jobs), rooms_(workers) {}

  // Whether the client runs less than its share.
  bool IsBelowShare(const std::string& client) const { return jobs_.LoadOf(client).running < ShareOfRunning(); }
  // Which of the worker's `running` jobs makes room for `next`, whose client is below its share; null if none.
  const Job* Choose(const Job& next, absl::Span<const Job* const> running) const;
  // A job of the worker is displaced. `taker` includes it.
  void OnDisplaced(const Taker& taker);

  // Whether the worker keeps its last room for other clients than this job's.
  bool KeepsRoomFrom(const Taker& taker, const Job& job) const;
  // The worker has taken a job. If that used the room, the worker keeps it for longer.
  void OnTaken(const Taker& taker);

 private:
  struct Room {
    // Until then the worker runs fewer than `full_with` jobs, except for clients below their share.
    absl::Time kept_until = absl::InfinitePast();
    int64_t full_with = 0;
  };

  int64_t ShareOfRunning() const;

  const PendingJobs& jobs_;
  std::vector<Room> rooms_;  // [workers]
};

}  // namespace longshort::core
