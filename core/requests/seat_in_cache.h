// Where the rows of a job's tokens are in the workers' caches, while no sequence runs for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/cache/parked_place.h"
#include "core/cache/prefix_index.h"
#include "core/session/session.h"

namespace longshort {

// The rows are its session's, which the session frees, or its own since it was paused, which nobody else wants once it
// has ended.
//
// Thread: the one that has the job.
class SeatInCache final {
 public:
  // `of_session`: where its session's rows are. `caches`: those that a place may be in; null if nobody frees pages.
  explicit SeatInCache(const std::optional<ParkedPlace>& of_session = std::nullopt,
                       std::shared_ptr<SessionPages> caches = nullptr)
      : place_(of_session), caches_(std::move(caches)) {}

  const std::optional<ParkedPlace>& place() const { return place_; }
  bool IsWith(int worker) const { return place_.has_value() && place_->worker == worker; }

  // The job was paused, and its own rows are parked there.
  void ParkOwn(const ParkedPlace& place) {
    place_ = place;
    is_own_ = true;
  }
  // Where its own rows are, if this worker has them and frees them now.
  std::optional<ParkedId> TakeOwn(int worker);
  // The job began somewhere, or ended: its own rows are freed, whatever worker has them.
  void Leave();

  // The last search of the worker's cache for the job's tokens. `cache` is PagedCache::id(). The search of a worker
  // whose cache was replaced starts empty.
  PrefixSearch& SearchIn(int worker, uint64_t cache) const;

 private:
  struct Search {
    uint64_t cache = 0;  // none
    PrefixSearch last;
  };

  std::optional<ParkedPlace> place_;
  bool is_own_ = false;
  std::shared_ptr<SessionPages> caches_;
  mutable std::vector<Search> searches_;  // [workers] as far as they have searched
};

}  // namespace longshort
