// Finds the pages of a prefix that was read before.
//
// What was read is kept as chains of blocks from token 0 on. A block knows its tokens and the block before it, so a
// chain is its whole history, and a hit was compared token by token; hashes only make the search short. Chains part
// where their tokens do:
//
//   root ── block ── block ──┬── block ── block     an end
//                 a fork ────┘└── block              an end
//
// A block refers to the pages that its own rows lie on. A hit at its end needs the window, memory and segment pages
// that a sequence keeps there (CacheGrid::KeptAt), each from the last block before the end that has rows on it: after a
// fork, that is the page to which the rows before the fork were copied.
//
// Ends are leaves and forks at which a sequence can begin. The pages they need are kept until the end itself is given
// up; pages that no end needs are spare (PagePool), and go first. Another text will hardly part from a chain at its
// very end, behind the first one's question and answer: so a leaf also needs what those before it need, some way back
// (CacheGrid::ForkRoom). A leaf at which nobody can begin any more is removed.
// A block on which a sequence stands (Pin) is no end: its pages are held by the sequence.
//
// Thread: the one that owns the pools.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/page_pool.h"
#include "core/cache/page_table.h"

namespace longshort::core {

// A hash of a block's tokens behind a history with that hash.
using BlockHash = uint64_t (*)(uint64_t history, absl::Span<const int32_t> tokens);
uint64_t HashOfBlock(uint64_t history, absl::Span<const int32_t> tokens);

// A block of a chain; made and changed by the PrefixIndex only.
struct PrefixBlock {
  PrefixBlock* parent = nullptr;  // null: the root, before token 0
  int64_t end = 0;                // tokens from the stream's begin to the block's end
  uint64_t hash = 0;
  std::vector<int32_t> tokens;  // [block_tokens]
  // For each strip the pages from CacheGrid::Pages(strip, end - block_tokens, end).first on.
  std::array<std::vector<PageVersion>, kStrips.size()> pages;
  int64_t children = 0;
  int64_t pins = 0;
  uint64_t used = 0;  // when a sequence last ran from here; no other block's number
  // What it needs as an end, each page once; nothing otherwise.
  bool is_end = false;
  std::array<std::vector<models::PageId>, kStrips.size()> needed;
};

// What a search found last, for those who search for the same text again and again.
struct PrefixSearch {
  int64_t found = 0;    // tokens
  int64_t blocks = 0;   // that it looked at
  int64_t filled = -1;  // PrefixIndex::filled() then
};

class PrefixIndex final {
 public:
  // The arguments must outlive the index.
  PrefixIndex(CachePools& pools, const CacheGrid& grid, BlockHash hash = HashOfBlock);

  PrefixBlock* root() { return &root_; }

  // The last block behind `from` at which a sequence of these tokens can begin, having read `max_tokens` at the most;
  // `from` if there is no other. REQUIRES: `from` is the root, or a sequence of these tokens stands there.
  // Notes what it found in `search`.
  PrefixBlock* Longest(PrefixBlock* from, absl::Span<const int32_t> tokens, int64_t max_tokens, PrefixSearch& search);
  // Whether a search would find more now, as far as is worth knowing: a block was filled since, or after a search that
  // looked at many, an eighth as many. To look through a long text that was read, and of which most is gone, takes
  // milliseconds: too much for every step that reads a little of it.
  bool IsWorthRepeating(const PrefixSearch& search) const;

  // The pages of a sequence that begins at the block's end; nothing if one of them is gone.
  std::optional<PageTables> PagesAt(const PrefixBlock& block) const;

  // A sequence stands on the block, or does no longer: it last ran at `used`.
  void Pin(PrefixBlock* block);
  void Unpin(PrefixBlock* block, uint64_t used);

  // A sequence that stood on `block` has read the block behind it: makes it, or gives it the pages that it lacks, and
  // moves the sequence's pin there. `tables` are the sequence's.
  PrefixBlock* Advance(PrefixBlock* block, absl::Span<const int32_t> tokens, const PageTables& tables);

  // When the end that was used longest ago was used; nothing if there is no end.
  std::optional<uint64_t> OldestUse() const;
  // Gives that end up. REQUIRES: there is one.
  void EvictOldest();

  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }
  // How often a block got pages so far: nothing comes to be found unless this rises.
  int64_t filled() const { return filled_; }
  int64_t ends() const { return static_cast<int64_t>(ends_.size()); }
  // Ends that were given up so far.
  int64_t evicted() const { return evicted_; }

  // How many sequences stand on each block.
  using Pins = std::unordered_map<const PrefixBlock*, int64_t>;
  // Adds what the index holds and its ends need to the counts, [capacity of each pool].
  // Errors: INTERNAL if a block, its pins, or the order of the ends are not as they should be.
  absl::Status Audit(const Pins& pins, std::vector<PageHolders>& window, std::vector<PageHolders>& segment) const;

 private:
  using Blocks = std::unordered_multimap<uint64_t, std::unique_ptr<PrefixBlock>>;

  Blocks::const_iterator Find(const PrefixBlock& parent, uint64_t hash, absl::Span<const int32_t> tokens) const;
  PrefixBlock* Make(PrefixBlock& parent, uint64_t hash, absl::Span<const int32_t> tokens);
  // Refers to the pages of `tables` where the block has none.
  void FillIn(PrefixBlock& block, const PageTables& tables);

  // Makes an end of the block, or of one before it, if it should be one now; removes leaves that are of no use.
  void Settle(PrefixBlock* block);
  bool MakeEnd(PrefixBlock& block);
  // Adds what a sequence needs that begins at the block's end to what `end` needs. False, and nothing is added, if some
  // of it is gone.
  bool AddNeeds(const PrefixBlock& block, PrefixBlock& end) const;
  void ForgetEnd(PrefixBlock& block);
  // Removes a leaf; returns the block before it.
  PrefixBlock* Remove(PrefixBlock* leaf);

  CachePools& pools_;
  const CacheGrid& grid_;
  const BlockHash hash_;
  PrefixBlock root_;
  Blocks blocks_;                          // by hash, all but the root
  std::map<uint64_t, PrefixBlock*> ends_;  // by last use
  int64_t filled_ = 0;
  int64_t evicted_ = 0;
};

}  // namespace longshort::core
