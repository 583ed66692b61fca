// The cache of one worker's language model: which pages sequences get, what is kept of those that ended, and what goes
// when room is needed.
//
// Reservation. A sequence is admitted only if all the pages that it can ever need at once are left to it, so that none
// that runs is ever short of pages. What nobody runs on is idle, and counts as free.
//
// Reuse. A sequence that begins with tokens that were read before begins behind them, at the last block's end
// (CacheGrid) where all its rows are still there. Full pages are shared; a page that it would go on writing is copied.
// A running one may go on so too, behind what others read meanwhile: so a prompt that several begin at once is read
// once.
//
// Eviction, when a page is wanted and none is free. First go pages that no chain's end needs, the one used longest ago
// first; then ends of chains and parked sequences, whichever was used longest ago.
//
// Thread: one worker's thread owns a cache; others may call only what says that it is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/cached_sequence.h"
#include "core/cache/page_store.h"
#include "core/cache/parked_pages.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

// What has happened since the cache was made.
struct CacheCounters {
  int64_t hits = 0;            // sequences that began behind tokens read before
  int64_t misses = 0;          // sequences that did not: from token 0, or so far back that the rows are exact
  int64_t reused_tokens = 0;   // that sequences did not have to read
  int64_t resumed = 0;         // parked sequences that went on
  int64_t imported = 0;        // sequences that came from another cache
  int64_t copied_pages = 0;    // because others held them
  int64_t evicted_parked = 0;  // sequences
  int64_t evicted_ends = 0;    // ends of chains
  int64_t evicted_window = 0;  // pages that no end needed
  int64_t evicted_segment = 0;
};

struct CacheState {
  models::CachePages in_use;  // held by running sequences
  models::CachePages idle;    // held for later only
  models::CachePages spare;   // those of them that no end of a chain needs and no parked sequence holds
  models::CachePages free;
  models::CachePages reserved;  // for running sequences, in use or not yet
  int64_t parked_sequences = 0;
  int64_t ends = 0;  // of chains, whose pages are kept
  CacheCounters counters;
};

class PagedCache final {
 public:
  // Gives the model its cache. `model` must outlive this; `hash` is for tests.
  // Errors: as LanguageModel::AllocateCache.
  static absl::StatusOr<std::unique_ptr<PagedCache>> Create(models::LanguageModel& model,
                                                            const models::CachePages& capacity,
                                                            BlockHash hash = HashOfBlock);

  // Whether a sequence of at most `max_tokens` tokens could run if it were alone. Thread-safe.
  // Errors: RESOURCE_EXHAUSTED naming the bytes it needs and those there are.
  absl::Status CheckFits(int64_t max_tokens) const;
  // Whether it can be admitted beside those that run now.
  bool FitsNow(int64_t max_tokens) const;

  // Admits a sequence that will read `tokens` and at most `max_tokens` in all. It stands behind the tokens that it
  // need not read: `max_reused` at the most, which is less than tokens.size() if the last one's logits are wanted.
  // Errors: UNAVAILABLE unless FitsNow, INTERNAL if the model cannot copy a page.
  absl::StatusOr<std::unique_ptr<CachedSequence>> Begin(absl::Span<const int32_t> tokens, int64_t max_reused,
                                                        int64_t max_tokens);
  // How many of its tokens such a sequence would not have to read now: what the `last` search for it in this cache
  // found, unless that is worth repeating (PrefixIndex). Exact with a new PrefixSearch.
  int64_t Findable(absl::Span<const int32_t> tokens, int64_t max_reused, PrefixSearch& last);
  // Lets a running sequence that reads `tokens` stand behind those that others have read meanwhile, if they are worth
  // looking for again; `max_reused` as it was for Begin, and within what it was admitted for. Returns how many it need
  // not read now: 0 if it stands where it stood. Errors: INTERNAL if the model cannot copy a page: it must be ended.
  absl::StatusOr<int64_t> SkipRead(CachedSequence& sequence, absl::Span<const int32_t> tokens, int64_t max_reused);
  // Where to begin in order to be exact again at `position`, without reading all that came before.
  int64_t RecomputeFrom(int64_t position) const { return store_.grid.RecomputeFrom(position); }
  // Admits a sequence that begins at `position`, which RecomputeFrom gave. It never enters the prefix index.
  // Errors: as Begin.
  absl::StatusOr<std::unique_ptr<CachedSequence>> BeginAt(int64_t position, int64_t max_tokens);

  // Makes a running sequence idle. It keeps its pages until some are wanted for something else; then it is dropped.
  ParkedId Park(std::unique_ptr<CachedSequence> sequence);
  bool IsParked(ParkedId id) const { return store_.parked.contains(id); }
  // Tokens that a parked sequence has read. REQUIRES: IsParked(id).
  int64_t PositionOf(ParkedId id) const { return store_.parked.at(id).state.position; }
  // Admits a parked sequence again, for `max_tokens` tokens in all, those read included.
  // Errors: NOT_FOUND if its pages are gone (read its tokens again: Begin or BeginAt); UNAVAILABLE unless FitsNow, and
  // then it stays parked.
  absl::StatusOr<std::unique_ptr<CachedSequence>> Resume(ParkedId id, int64_t max_tokens);
  // What a parked sequence has, which stays parked and counts as used. Errors: NOT_FOUND if its pages are gone;
  // INTERNAL if the model cannot read a page.
  absl::StatusOr<ParkedPages> Export(ParkedId id);
  // How the bytes of its pages are to be read: LanguageModelInfo::cache_layout.
  const std::string& layout() const { return store_.model.info().cache_layout; }
  // Parks a sequence that was exported from another cache, of a model of the same weights and layout; `tokens` are the
  // session's. It gets pages as a sequence that is admitted does; it never enters the prefix index.
  // Errors, and then nothing is changed but that idle pages may have been given up: DATA_LOSS as CheckParkedPages;
  // UNAVAILABLE unless there is room now; INTERNAL if the model cannot write a page.
  absl::StatusOr<ParkedId> Import(const ParkedPages& pages, absl::Span<const int32_t> tokens);
  // Gives a parked sequence up, if it is there, and frees the pages that only it holds. Its blocks stay findable as
  // those of a sequence that ended when this one was used last.
  void Drop(ParkedId id) { store_.Drop(id); }

  // No other cache of this process has or had this number, which is at least 1.
  uint64_t id() const { return id_; }

  CacheState state() const;

  // Errors: INTERNAL if pages were lost, given out twice, or are counted wrongly.
  absl::Status CheckInvariants() const;

 private:
  PagedCache(models::LanguageModel& model, const models::CachePages& capacity, BlockHash hash);

  absl::StatusOr<std::unique_ptr<CachedSequence>> Admit(int64_t max_tokens);
  const models::CachePages& page_bytes() const { return store_.model.info().page_bytes; }

  const uint64_t id_;
  PageStore store_;
  const models::CachePages capacity_;
  CacheCounters counters_;
};

}  // namespace longshort::core
