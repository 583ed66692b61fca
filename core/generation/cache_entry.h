// Where a job's sequence begins in a worker's cache: where it was parked, behind tokens that are there, or at the
// begin.
//
// Thread: the one that owns the cache.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/cache/paged_cache.h"
#include "core/jobs/job.h"

namespace longshort {

// Whether there is room for the job now, or it needs none: it has nothing to read, or could never run here.
bool FitsNow(const PagedCache& cache, const Job& job);

// How many tokens a job that was not started would have to read before it generates, or ends, if it entered now; about,
// where that is asked of a long prompt again and again.
int64_t TokensToRead(PagedCache& cache, const Job& job);

// Finds the job its place. Errors: as PagedCache::Begin.
absl::StatusOr<std::unique_ptr<CachedSequence>> EnterCache(PagedCache& cache, const Job& job);

}  // namespace longshort
