// The cache of one worker's language model: assigns pages to sequences, keeps pages of ended sequences, and evicts them
// when room is needed.
//
// Reservation. A sequence is admitted only if all pages that it can ever need at once are available to it, so that no
// running sequence lacks a page. Pages without a running sequence are idle, and count as available.
//
// Reuse. A sequence whose first tokens are cached begins after them, at the end of the last block (CacheGrid) whose
// rows are all there. Full pages are shared; a page that it would write to is copied. A running sequence may also skip
// tokens that others have read meanwhile, so a prompt that several requests begin at once is read once.
//
// Eviction, when a page is needed and none is free. Pages that no end of a chain needs go first, least recently used
// first; then ends of chains and parked sequences, least recently used first.
//
// Thread: one worker's thread owns a cache; other threads may call only the functions that are marked as thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/cached_sequence.h"
#include "core/cache/page_store.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

// Counters since the cache was created.
struct CacheCounters {
  int64_t hits = 0;            // sequences that began after cached tokens
  int64_t misses = 0;          // other sequences: from token 0, or far enough back that the rows are exact
  int64_t reused_tokens = 0;   // that sequences did not have to read
  int64_t resumed = 0;         // parked sequences that continued
  int64_t imported = 0;        // sequences that came from another cache
  int64_t copied_pages = 0;    // because they had other holders
  int64_t evicted_parked = 0;  // sequences
  int64_t evicted_ends = 0;    // ends of chains
  int64_t evicted_window = 0;  // pages that no end needed
  int64_t evicted_segment = 0;
};

struct CacheState {
  models::CachePages in_use;  // held by running sequences
  models::CachePages idle;    // held only for later use
  models::CachePages spare;   // idle pages that no end of a chain needs and no parked sequence holds
  models::CachePages free;
  models::CachePages reserved;  // for running sequences, in use or not yet
  int64_t parked_sequences = 0;
  int64_t ends = 0;  // of chains, whose pages are kept
  CacheCounters counters;
};

class PagedCache final {
 public:
  // Creates the model's cache. `model` must outlive this; `hash` is for tests.
  // Errors: as LanguageModel::AllocateCache.
  static absl::StatusOr<std::unique_ptr<PagedCache>> Create(models::LanguageModel& model,
                                                            const models::CachePages& capacity,
                                                            BlockHash hash = HashOfBlock);

  // Whether a sequence of at most `max_tokens` tokens could run alone. Thread-safe.
  // Errors: RESOURCE_EXHAUSTED naming the needed and the available bytes.
  absl::Status CheckFits(int64_t max_tokens) const;
  // Whether it can be admitted in addition to the running sequences.
  bool FitsNow(int64_t max_tokens) const;

  // Admits a sequence that will read `tokens`, and at most `max_tokens` in total. It begins after at most `max_reused`
  // cached tokens, which must be fewer than tokens.size() if the last one's logits are needed.
  // Errors: UNAVAILABLE unless FitsNow, INTERNAL if the model cannot copy a page.
  absl::StatusOr<std::unique_ptr<CachedSequence>> Begin(absl::Span<const int32_t> tokens, int64_t max_reused,
                                                        int64_t max_tokens);
  // How many of its tokens such a sequence would not have to read now. Uses the result of the `last` search in this
  // cache, unless repeating it is worthwhile (PrefixIndex). Exact with a new PrefixSearch.
  int64_t Findable(absl::Span<const int32_t> tokens, int64_t max_reused, PrefixSearch& last);
  // Whether Findable would search again.
  bool IsWorthSearching(const PrefixSearch& last) const { return store_.index.IsWorthRepeating(last); }
  // Moves a running sequence that reads `tokens` past those that others have read meanwhile, if searching again is
  // worthwhile. `max_reused` as for Begin, and within the number of tokens that it was admitted for. Returns how many
  // tokens it skips, which may be 0. Errors: INTERNAL if the model cannot copy a page; then the sequence must end.
  absl::StatusOr<int64_t> SkipRead(CachedSequence& sequence, absl::Span<const int32_t> tokens, int64_t max_reused);
  // Where to begin in order to be exact again at `position`, without reading all earlier tokens.
  int64_t RecomputeFrom(int64_t position) const { return store_.grid.RecomputeFrom(position); }
  // Admits a sequence that begins at `position`, which RecomputeFrom returned. It never enters the prefix index.
  // Errors: as Begin.
  absl::StatusOr<std::unique_ptr<CachedSequence>> BeginAt(int64_t position, int64_t max_tokens);

  // Makes a running sequence idle. It keeps its pages until it is evicted.
  ParkedId Park(std::unique_ptr<CachedSequence> sequence);
  bool IsParked(ParkedId id) const { return store_.parked.contains(id); }
  // Tokens that a parked sequence has read. REQUIRES: IsParked(id).
  int64_t PositionOf(ParkedId id) const { return store_.parked.at(id).state.position; }
  // Admits a parked sequence again, for `max_tokens` tokens in total, including those read.
  // Errors: NOT_FOUND if it was evicted (read its tokens again: Begin or BeginAt); UNAVAILABLE unless FitsNow: then it
  // stays parked.
  absl::StatusOr<std::unique_ptr<CachedSequence>> Resume(ParkedId id, int64_t max_tokens);
  // The pages of a parked sequence, which stays parked and counts as used. Errors: NOT_FOUND if it was evicted;
  // INTERNAL if the model cannot read a page.
  absl::StatusOr<ParkedPages> Export(ParkedId id);
  // The format of the pages' bytes: LanguageModelInfo::cache_layout.
  const std::string& layout() const { return store_.model.info().cache_layout; }
  // Parks a sequence that another cache exported, of a model of the same weights and layout; `tokens` are the
  // session's. It gets pages like an admitted sequence, and never enters the prefix index.
  // Errors, after which nothing has changed except that idle pages may be evicted: DATA_LOSS as CheckParkedPages;
  // UNAVAILABLE unless there is room now; INTERNAL if the model cannot write a page.
  absl::StatusOr<ParkedId> Import(const ParkedPages& pages, absl::Span<const int32_t> tokens);
  // Removes a parked sequence, if it is there, and frees the pages that only it holds. Its blocks stay findable like
  // those of a sequence that ended when this one was last used.
  void RemoveParked(ParkedId id) { store_.RemoveParked(id); }

  // Unique in this process, at least 1.
  uint64_t id() const { return id_; }

  CacheState state() const;

  // Errors: INTERNAL if a page is lost, has two owners, or is counted wrongly.
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
