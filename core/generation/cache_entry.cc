#include "core/generation/cache_entry.h"

#include <algorithm>
#include <vector>

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
  const std::vector<int32_t>& tokens = job.stream().all();
  const int64_t recompute_from = cache.RecomputeFrom(job.stream().read());
  PrefixSearch now;
  if (recompute_from > 0 && cache.Findable(tokens, job.MostReused(), now) < recompute_from) {
    return cache.BeginAt(recompute_from, job.MostTokens());
  }
  return cache.Begin(tokens, job.MostReused(), job.MostTokens());
}

}  // namespace longshort
