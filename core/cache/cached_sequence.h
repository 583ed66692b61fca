// A running sequence in the cache: its pages, and which of them its next slice needs.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/page_store.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

// Created by PagedCache, which it must not outlive. The destructor ends it: the prefix index can find its tokens until
// their pages are evicted.
//
//   while (...) { n = MaxTokens(wanted); FillIn(a slice of n tokens); model.Step(...); OnRead(the tokens); }
//
// Thread: the cache's.
class CachedSequence final {
 public:
  CachedSequence(const CachedSequence&) = delete;
  CachedSequence& operator=(const CachedSequence&) = delete;
  ~CachedSequence();

  // Tokens read so far: the stream position of the next one.
  int64_t position() const { return state_.position; }
  // Tokens that it did not have to read when it began.
  int64_t reused_tokens() const { return reused_tokens_; }

  // How many of the next `wanted` tokens one slice may have without using pages that others reserved: at least those
  // before the end of the current block. REQUIRES: 1 <= wanted; position() + wanted <= the number of tokens that it was
  // admitted for.
  int64_t MaxTokens(int64_t wanted) const;

  // Fills in position, segment start, page ranges and open chunk of a slice of tokens.size() tokens. The ranges are
  // valid until the next call of FillIn, OnRead or RollBack. REQUIRES: tokens.size() <= MaxTokens(tokens.size()).
  // Errors: INTERNAL if no page is available, which contradicts the reservation.
  absl::Status FillIn(models::Slice& slice);
  // The slice was run: makes its blocks findable, and releases pages that no later query sees.
  void OnRead(absl::Span<const int32_t> tokens);

  // Called when the sequence's rows may be wrong. Makes its pages unfindable, except those that the end of a chain
  // needs.
  void Withdraw();

  // Returns to the position where `position` tokens were read, or to an earlier one if rows are missing. Returns the
  // position; the tokens after it must be read again. REQUIRES: position <= position().
  // Errors: NOT_FOUND if so many rows are missing that reading from RecomputeFrom(position) takes fewer tokens: end the
  // sequence and begin it there. INTERNAL if the model cannot copy a page.
  absl::StatusOr<int64_t> RollBack(int64_t position);

 private:
  friend class PagedCache;
  // Reserves pages; holds none yet.
  CachedSequence(PageStore& store, const models::CachePages& reserved);

  // Begins at the end of a block, all of whose pages are there.
  absl::Status StartAt(PrefixBlock* block);
  // Begins at a position that RecomputeFrom returned.
  absl::Status StartWithoutHistory(int64_t position);
  // Takes over the pages of `state` as running.
  void Adopt(SequenceState state);
  // Begins at the position of an exported sequence, on new pages with its contents. REQUIRES: they were checked.
  absl::Status StartFrom(const ParkedPages& pages, const models::CachePages& page_bytes,
                         absl::Span<const int32_t> tokens);
  // Copies the pages that it would write to and that have other holders.
  absl::Status OwnPagesToWrite();
  absl::Status TakeOpenChunk();
  // Moves the state out; only the reservation is left.
  SequenceState TakeState();
  // The number of pages of a strip that a slice up to token `end` adds.
  int64_t NewPages(Strip strip, int64_t end) const;
  void ReleasePagesBefore(Strip strip, int64_t page);
  void ReleasePagesFrom(Strip strip, int64_t page);
  void UpdateClaim();

  PageStore& store_;
  const models::CachePages reserved_;
  models::CachePages claim_;
  SequenceState state_;
  int64_t reused_tokens_ = 0;
  PrefixSearch search_;  // for tokens that others have read meanwhile
};

}  // namespace longshort::core
