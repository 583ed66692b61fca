#include "core/generation/placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/requests/request_context.h"

namespace longshort::core {

void Placement::Record(const Taker& taker) {
  Worker& worker = workers_[taker.worker];
  worker.running = taker.running;
  worker.max_streams = taker.max_streams;
  worker.last_seen = taker.now;
}

bool Placement::SetHasRoom(int worker, bool has_room) {
  const bool had_room = std::exchange(workers_[worker].has_room, has_room);
  return had_room && !has_room && workers_.size() > 1;
}

bool Placement::SetSkippedByOwner(Job& job, bool skipped) {
  return !std::exchange(job.entry.skipped_by_owner_, skipped) && skipped;
}

bool Placement::IsFor(const Taker& taker, const Job& job) const {
  if (job.entry.is_searched() || !MayTake(taker.worker, job)) return false;
  const auto could_take = [&](int worker) { return CanTakeSoon(workers_[worker], taker.now) && MayTake(worker, job); };
  const std::optional<ParkedPlace>& place = job.parked_rows.place();
  if (place.has_value() && !job.entry.skipped_by_owner_ && could_take(place->worker)) {
    return job.parked_rows.IsWith(taker.worker);
  }
  for (int other = 0; other < static_cast<int>(workers_.size()); ++other) {
    if (!workers_[other].has_enough_to_read && IsBusierThan(taker, other) && could_take(other)) return false;
  }
  return true;
}

bool Placement::CanTakeSoon(const Worker& worker, absl::Time now) {
  const bool sleeps = worker.running == 0;  // or will sleep soon
  return worker.has_room && (sleeps || worker.last_seen > now - kLongestStep);
}

bool Placement::IsBusierThan(const Taker& taker, int other) const {
  const StreamEstimatorPerDevice& estimates = jobs_.estimates();
  return estimates.Load(other, workers_[other].running) < estimates.Load(taker.worker, taker.running);
}

int64_t Placement::FreeStreams() const {
  int64_t free = 0;
  for (const Worker& worker : workers_) {
    if (!worker.has_room || worker.has_enough_to_read) continue;
    free += std::max<int64_t>(0, worker.max_streams - worker.running);
  }
  return free;
}

const Job* Displacement::Choose(const Job& next, absl::Span<const Job* const> running) const {
  const bool runs_nothing = jobs_.LoadOf(next.context().client).running == 0;
  const Job* displaced = nullptr;
  int64_t most = ShareOfRunning();
  for (auto job = running.rbegin(); job != running.rend(); ++job) {
    const RequestContext& context = (*job)->context();
    const int64_t runs = jobs_.LoadOf(context.client).running;
    if (runs <= most || (context.priority > next.context().priority && !runs_nothing)) continue;
    displaced = *job;
    most = runs;
  }
  return displaced;
}

void Displacement::OnDisplaced(const Taker& taker) {
  rooms_[taker.worker] = {.kept_until = taker.now + kKeepRoom, .full_with = taker.running};
}

bool Displacement::KeepsRoomFrom(const Taker& taker, const Job& job) const {
  const Room& room = rooms_[taker.worker];
  if (taker.running == 0 || taker.now >= room.kept_until || taker.running + 1 < room.full_with) return false;
  // The shares as they were before a job was displaced for another client, which may have no work just now.
  const int64_t share = (jobs_.Running() + 1) / std::max<int64_t>(2, jobs_.active_clients());
  return jobs_.LoadOf(job.context().client).running >= std::max<int64_t>(1, share);
}

void Displacement::OnTaken(const Taker& taker) {
  Room& room = rooms_[taker.worker];
  if (taker.now < room.kept_until && taker.running + 1 >= room.full_with) room.kept_until = taker.now + kKeepRoom;
}

int64_t Displacement::ShareOfRunning() const {
  return std::max<int64_t>(1, jobs_.Running() / std::max<int64_t>(1, jobs_.active_clients()));
}

}  // namespace longshort::core
