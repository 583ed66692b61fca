#include "core/generation/worker_states.h"

#include "core/cache/cache_grid.h"

namespace longshort::core {
namespace {

void Add(const CacheCounters& more, CacheCounters& sum) {
  sum.hits += more.hits;
  sum.misses += more.misses;
  sum.reused_tokens += more.reused_tokens;
  sum.resumed += more.resumed;
  sum.imported += more.imported;
  sum.copied_pages += more.copied_pages;
  sum.evicted_parked += more.evicted_parked;
  sum.evicted_ends += more.evicted_ends;
  sum.evicted_window += more.evicted_window;
  sum.evicted_segment += more.evicted_segment;
}

// The number of sequences that entered the cache since it was created.
int64_t SequencesBegun(const CacheCounters& counters) {
  return counters.hits + counters.misses + counters.resumed + counters.imported;
}

void Add(const CacheState& more, CacheState& sum) {
  sum.in_use = sum.in_use + more.in_use;
  sum.idle = sum.idle + more.idle;
  sum.spare = sum.spare + more.spare;
  sum.free = sum.free + more.free;
  sum.reserved = sum.reserved + more.reserved;
  sum.parked_sequences += more.parked_sequences;
  sum.ends += more.ends;
  Add(more.counters, sum.counters);
}

}  // namespace

void WorkerStates::Set(size_t worker, const LanguageModelEngineState& state) {
  const MutexLock lock(mutex_);
  const CacheCounters& before = states_[worker].cache.counters;
  if (SequencesBegun(state.cache.counters) < SequencesBegun(before)) Add(before, of_discarded_caches_);
  states_[worker] = state;
  observer_.OnState(SumOfAll());
}

void WorkerStates::ReportQueued() {
  const MutexLock lock(mutex_);
  observer_.OnState(SumOfAll());
}

LanguageModelEngineState WorkerStates::Sum() const {
  const MutexLock lock(mutex_);
  return SumOfAll();
}

LanguageModelEngineState WorkerStates::SumOfAll() const {
  LanguageModelEngineState sum;
  sum.queued_requests = queue_.size();
  sum.cache.counters = of_discarded_caches_;
  for (const LanguageModelEngineState& state : states_) {
    sum.active_streams += state.active_streams;
    sum.cache_bytes_used += state.cache_bytes_used;
    sum.cache_bytes_idle += state.cache_bytes_idle;
    sum.cache_bytes_free += state.cache_bytes_free;
    sum.cache_page_bytes = Larger(sum.cache_page_bytes, state.cache_page_bytes);
    Add(state.cache, sum.cache);
  }
  return sum;
}

}  // namespace longshort::core
