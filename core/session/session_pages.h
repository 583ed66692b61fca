// The pages that idle sessions have in the caches of one engine, as the store of sessions knows them.
#pragma once

#include "core/cache/parked_place.h"

namespace longshort {

// Thread-safe.
class SessionPages {
 public:
  virtual ~SessionPages() = default;

  // No session has this place any more: it was closed, has ended, or goes on elsewhere. Soon frees its pages, if they
  // are still there. Called by whoever used the store, which is not locked; must not block.
  virtual void GiveUp(const ParkedPlace& place) = 0;
};

}  // namespace longshort
