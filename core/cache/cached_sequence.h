// A running sequence in the cache: its pages, and which of them its next slice needs.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cache/page_store.h"
#include "core/cache/parked_pages.h"
#include "core/cache/prefix_index.h"
#include "models/model.h"

namespace longshort::core {

// Made by PagedCache, which it must not outlive. The destructor ends it: what it read stays findable in the prefix
// index until its pages are wanted for something else.
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

  // How many of the next `wanted` tokens may be one slice without touching what others reserved: at least as many as
  // lie before the end of the present block. REQUIRES: 1 <= wanted; position() + wanted <= the tokens it was admitted
  // for.
  int64_t MaxTokens(int64_t wanted) const;

  // Fills in position, segment start, page ranges and open chunk of a slice of tokens.size() tokens. The ranges stay
  // valid until the next call of this, OnRead or RollBack. REQUIRES: tokens.size() <= MaxTokens(tokens.size()).
  // Errors: INTERNAL if there is no page, which means that a promise above was broken.
  absl::Status FillIn(models::Slice& slice);
  // The slice was run: its blocks can be found from now on, and pages that no later query sees are released.
  void OnRead(absl::Span<const int32_t> tokens);

  // Its rows may be wrong: nobody finds the pages that it holds any more, but those that a chain's end needs.
  void Withdraw();

  // Goes back to where `position` tokens were read, or as little before as the rows that are still there allow, and
  // returns where it stands now; the tokens from there on are to be read again. REQUIRES: position <= position().
  // Errors: NOT_FOUND if the rows are gone that far back that less is read from RecomputeFrom(position) on: it must be
  // ended and begun anew. INTERNAL if the model cannot copy a page.
  absl::StatusOr<int64_t> RollBack(int64_t position);

 private:
  friend class PagedCache;
  // Reserves; holds nothing yet.
  CachedSequence(PageStore& store, const models::CachePages& reserved);

  // Begins at the end of a block, which has all pages, instead of where it stands.
  absl::Status StartAt(PrefixBlock* block);
  // Begins at a position that RecomputeFrom gave.
  absl::Status StartWithoutHistory(int64_t position);
  // Takes over what `state` holds for running.
  void Adopt(SequenceState state);
  // Begins where an exported sequence stands, on pages of its own with those contents. REQUIRES: they were checked.
  absl::Status StartFrom(const ParkedPages& pages, const models::CachePages& page_bytes,
                         absl::Span<const int32_t> tokens);
  // Copies the pages that it would write and others hold.
  absl::Status OwnPagesToWrite();
  absl::Status TakeOpenChunk();
  // Gives everything back but the reservation; the state is then empty.
  SequenceState LetGo();
  // The pages of a strip that a slice up to token `end` adds.
  int64_t NewPages(Strip strip, int64_t end) const;
  void DropPagesBefore(Strip strip, int64_t page);
  void DropPagesFrom(Strip strip, int64_t page);
  void UpdateClaim();

  PageStore& store_;
  const models::CachePages reserved_;
  models::CachePages claim_;
  SequenceState state_;
  int64_t reused_tokens_ = 0;
  PrefixSearch search_;  // for what others read of its tokens
};

}  // namespace longshort::core
