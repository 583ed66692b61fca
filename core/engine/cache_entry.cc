#include "core/engine/cache_entry.h"

#include <algorithm>

#include "models/status_macros.h"

namespace longshort {

bool FitsNow(const PagedCache& cache, const Job& job) {
  return job.complete() || !cache.CheckFits(job.MostTokens()).ok() || cache.FitsNow(job.MostTokens());
}

int64_t TokensToRead(PagedCache& cache, const Job& job) {
  const TokenStream& stream = job.stream();
  if (job.parked.has_value() && cache.IsParked(job.parked->id)) {
    return stream.end() - cache.PositionOf(job.parked->id);
  }
  const int64_t found = cache.Findable(stream.all(), job.MostReused(), job.searches[&cache]);
  return stream.end() - std::max(found, cache.RecomputeFrom(stream.read()));
}

absl::StatusOr<std::unique_ptr<CachedSequence>> EnterCache(PagedCache& cache, const Job& job) {
  if (job.parked.has_value() && cache.IsParked(job.parked->id)) {
    return cache.Resume(job.parked->id, job.MostTokens());
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> cached,
                      cache.Begin(job.stream().all(), job.MostReused(), job.MostTokens()));
  const int64_t recompute_from = cache.RecomputeFrom(job.stream().read());
  if (cached->position() >= recompute_from) return cached;
  cached.reset();  // gives its reservation back
  return cache.BeginAt(recompute_from, job.MostTokens());
}

}  // namespace longshort
