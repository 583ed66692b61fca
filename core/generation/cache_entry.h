// Where a job's sequence begins in a worker's cache. The first of these that can be:
// - where it was parked, with its pages;
// - behind those of its first tokens that the cache has rows of, or, if that is further on, so far before what it had
//   read that everything is exact again there (PagedCache::RecomputeFrom);
// - at the first token.
//
// Thread: the one that owns the cache.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/cache/paged_cache.h"
#include "core/requests/job.h"

namespace longshort {

// Whether the job can be taken from the queue now. Either there is room for it, or it needs none: it has nothing to
// read, or could never run here.
bool FitsNow(const PagedCache& cache, const Job& job);

// How many tokens a job that does not run would have to read before it generates, or ends, if it entered now. Where
// this is asked of a long prompt again and again, the number is about right (PagedCache::Findable).
int64_t TokensToRead(PagedCache& cache, const Job& job);

// Finds the job its place. Errors: as PagedCache::Begin.
absl::StatusOr<std::unique_ptr<CachedSequence>> EnterCache(PagedCache& cache, const Job& job);

}  // namespace longshort
