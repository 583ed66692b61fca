// Where a sequence was parked: in the cache of which of an engine's workers.
//
// A hint, which may turn out void: the pages may have been given up, and the worker have another cache by now.
#pragma once

#include "core/cache/page_store.h"

namespace longshort {

struct ParkedPlace {
  int worker = 0;
  ParkedId id = 0;
};

}  // namespace longshort
