// The pages that idle sessions, and requests whose clients take nothing, have parked in the caches of one engine, as
// those know them who know the sessions and the requests.
#pragma once

#include "core/cache/parked_place.h"

namespace longshort {

// Thread-safe.
class SessionPages {
 public:
  virtual ~SessionPages() = default;

  // Nobody wants this place any more: what was parked was closed, has ended, or went on. Soon frees its
  // pages, if they are still there. Called with nothing locked; must not block.
  virtual void GiveUp(const ParkedPlace& place) = 0;
};

}  // namespace longshort
