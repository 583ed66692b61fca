// What a cache is made of: pools, prefix index, parked sequences and reservations, and how a page is had when none is
// free. For core/cache only; everybody else uses PagedCache.
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
#include "core/cache/cache_pages.h"
#include "core/cache/page_pool.h"
#include "core/cache/page_table.h"
#include "core/cache/parked_pages.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

class CachedSequence;

// All that a sequence is, but for its tokens.
struct SequenceState {
  PageTables tables;
  models::PageId open_chunk = models::kZeroPage;
  int64_t begin = 0;  // where it began to be read: 0, or CacheGrid::RecomputeFrom
  int64_t position = 0;
  // The block that ends where its present block begins, on which it stands in the prefix index; null if it does not
  // belong there, because it began behind token 0.
  PrefixBlock* block = nullptr;
  std::vector<int32_t> tail;  // the tokens of its present block so far

  // Pages that it holds.
  models::CachePages Pages() const;
};

// What running sequences may take: the sum of their claims never exceeds the capacity. A claim is what a sequence
// reserved, or what it holds where that is more.
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

// A sequence that may go on later.
struct ParkedSequence {
  SequenceState state;
  uint64_t used = 0;  // when it was parked, or exported last
};

struct PageStore final {
  PageStore(models::LanguageModel& model, const models::CachePages& capacity, BlockHash hash);
  PageStore(const PageStore&) = delete;

  // A page for a running sequence: a free one, or else what is worth least is given up. Nothing if nothing is idle.
  std::optional<models::PageId> Take(PagePool& pool);
  // Gives a sequence that holds `page` one with the same rows that nobody else holds: the page itself or a copy.
  // REQUIRES: the sequence's claim has room for it.
  absl::StatusOr<models::PageId> MakeOwn(models::PageKind kind, models::PageId page);

  // All the pages of a sequence, whatever its block.
  void Hold(const SequenceState& state, Holder holder);
  void Release(const SequenceState& state, Holder holder);

  ParkedId Park(SequenceState state);
  // Makes it the parked sequence that was used last. REQUIRES: it is parked.
  void Use(ParkedId id);
  // Takes a parked sequence away, whose pages are then held for running. REQUIRES: it is parked.
  SequenceState Unpark(ParkedId id);
  // Gives a parked sequence up, if it is there: frees the pages that only it holds. Its blocks stay findable, as an end
  // that was used when the sequence was.
  void Drop(ParkedId id);

  // Gives up what is worth least while the prefix index has more blocks than it may beside those of what runs: an
  // eighth of the pages' bytes, at least 16 MiB. A text's pages are of a fixed number, its blocks are not.
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
  // Gives up what is worth least of what can have pages of this pool. False if there is nothing.
  bool EvictOldest(const PagePool& pool);

  const int64_t max_blocks_;  // of the index, beside those of what runs
};

}  // namespace longshort::core
