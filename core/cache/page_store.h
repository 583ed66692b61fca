// The parts of a cache: pools, prefix index, parked sequences and reservations, and the eviction that frees pages. For
// core/cache only; other code uses PagedCache.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cache/cache_grid.h"
#include "core/cache/page_pool.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

class CachedSequence;

// The state of a sequence, except its tokens.
struct SequenceState {
  PageTables tables;
  models::PageId open_chunk = models::kZeroPage;
  int64_t begin = 0;  // where its reading began: 0, or CacheGrid::RecomputeFrom
  int64_t position = 0;
  // The block of the prefix index that ends where the sequence's current block begins; null if the sequence is not in
  // the index, because it began after token 0.
  PrefixBlock* block = nullptr;
  std::vector<int32_t> tail;  // the tokens of its current block so far

  // The pages that it holds.
  models::CachePages Pages() const;
};

// The claims of running sequences, whose sum never exceeds the capacity. A claim is the larger of a sequence's
// reservation and the pages that it holds.
class Reservations final {
 public:
  explicit Reservations(const models::CachePages& capacity) : capacity_(capacity) {}

  models::CachePages Unclaimed() const { return capacity_ - claimed_; }
  const models::CachePages& claimed() const { return claimed_; }
  void Change(const models::CachePages& from, const models::CachePages& to) { claimed_ = claimed_ - from + to; }

 private:
  const models::CachePages capacity_;
  models::CachePages claimed_;
};

// A sequence that may be resumed later.
struct ParkedSequence {
  SequenceState state;
  uint64_t used = 0;  // when it was parked or last exported
};

struct PageStore final {
  PageStore(models::LanguageModel& model, const models::CachePages& capacity, BlockHash hash);
  PageStore(const PageStore&) = delete;

  // A page for a running sequence: a free one, or else one from eviction. nullopt if no page is idle.
  std::optional<models::PageId> Take(PagePool& pool);
  // Given a held `page`, returns a page with the same rows and no other holder: the page itself or a copy.
  // REQUIRES: the sequence's claim has room for it.
  absl::StatusOr<models::PageId> MakeOwn(models::PageKind kind, models::PageId page);

  // Holds or releases all pages of a sequence, but not its block.
  void Hold(const SequenceState& state, Holder holder);
  void Release(const SequenceState& state, Holder holder);

  ParkedId Park(SequenceState state);
  // Marks the parked sequence as the most recently used one. REQUIRES: it is parked.
  void Use(ParkedId id);
  // Removes a parked sequence and holds its pages as running. REQUIRES: it is parked.
  SequenceState Unpark(ParkedId id);
  // Removes a parked sequence, if it is there, and frees the pages that only it holds. Its blocks stay findable, as an
  // end that was used when the sequence was.
  void RemoveParked(ParkedId id);

  // Evicts while the prefix index has too many blocks besides those of running sequences: their limit is an eighth of
  // the pages' bytes, at least 16 MiB. The pages of a text are limited, its blocks are not.
  void BoundIndex();

  PagePool& PoolOf(models::PageKind kind);

  models::LanguageModel& model;
  const CacheGrid grid;
  CachePools pools;
  PrefixIndex index;
  Reservations reservations;
  std::map<ParkedId, ParkedSequence> parked;
  std::map<uint64_t, ParkedId> parked_by_use;
  std::set<const CachedSequence*> running;
  int64_t copied_pages = 0;
  int64_t evicted_parked = 0;

 private:
  // Evicts the least recently used entry that may have pages of this pool. False if there is none.
  bool EvictOldest(const PagePool& pool);

  const int64_t max_blocks_;  // of the index, besides those of running sequences
};

}  // namespace longshort::core
