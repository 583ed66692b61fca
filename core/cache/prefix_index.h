// Finds the pages of a prefix that was read before.
//
// The index stores chains of blocks, each starting at token 0. A block has its tokens and the block before it, so a
// chain is a complete history. A hit compares all tokens; hashes only speed up the search. Chains fork where their
// tokens differ:
//
//   root ── block ── block ──┬── block ── block     an end
//                 a fork ────┘└── block              an end
//
// A block refers to the pages that its own rows are on. A hit at its end needs the window, memory and segment pages
// that a sequence keeps there (CacheGrid::KeptAt), each from the last block before the end that has rows on it. After a
// fork, that is the page to which the rows before the fork were copied.
//
// Ends are leaves, and forks at which a sequence can begin. The pages that they need are kept until the end itself is
// evicted; pages that no end needs are spare (PagePool), and are evicted first. A new text seldom diverges exactly at
// the end of a cached one. So a leaf also keeps the pages needed to resume up to ForkRoom() tokens earlier. A leaf at
// which no sequence can begin any longer is removed.
// A block at which a sequence is (Pin) is no end: the sequence holds its pages.
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

namespace longshort::core {

// A hash of a block's tokens, given the hash of the history before them.
using BlockHash = uint64_t (*)(uint64_t history, absl::Span<const int32_t> tokens);
uint64_t HashOfBlock(uint64_t history, absl::Span<const int32_t> tokens);

// A block of a chain; only the PrefixIndex creates and changes it.
struct PrefixBlock {
  PrefixBlock* parent = nullptr;  // null: the root, before token 0
  int64_t end = 0;                // tokens from the stream's beginning to the block's end
  uint64_t hash = 0;
  std::vector<int32_t> tokens;  // [block_tokens]
  // For each strip, the pages starting at CacheGrid::Pages(strip, end - block_tokens, end).first.
  std::array<std::vector<PageVersion>, kStrips.size()> pages;
  int64_t children = 0;
  int64_t pins = 0;
  uint64_t used = 0;  // when a sequence last ran from here; unique among blocks
  // The pages that it needs as an end, each once; empty otherwise.
  bool is_end = false;
  std::array<std::vector<models::PageId>, kStrips.size()> needed;
};

// The result of the last search, for callers that repeatedly search for the same text.
struct PrefixSearch {
  int64_t found = 0;    // tokens
  int64_t blocks = 0;   // visited
  int64_t filled = -1;  // PrefixIndex::filled() at that time
};

class PrefixIndex final {
 public:
  // The arguments must outlive the index.
  PrefixIndex(CachePools& pools, const CacheGrid& grid, BlockHash hash = HashOfBlock);

  PrefixBlock* root() { return &root_; }

  // The last block after `from` at which a sequence of these tokens can begin, after at most `max_tokens` of them;
  // `from` if there is no other. REQUIRES: `from` is the root, or a sequence of these tokens is there.
  // Stores its result in `search`.
  PrefixBlock* FindLongest(PrefixBlock* from, absl::Span<const int32_t> tokens, int64_t max_tokens,
                           PrefixSearch& search);
  // Whether repeating the search is worthwhile: whether a block was filled since, or, after a search that visited many
  // blocks, an eighth as many. Searching a long text most of which was evicted takes milliseconds, too much for each
  // step that reads a little of it.
  bool IsWorthRepeating(const PrefixSearch& search) const;

  // The pages of a sequence that begins at the block's end; nullopt if one of them was evicted.
  std::optional<PageTables> PagesAt(const PrefixBlock& block) const;

  // A sequence is at the block, or leaves it; it last ran at `used`.
  void Pin(PrefixBlock* block);
  void Unpin(PrefixBlock* block, uint64_t used);

  // A sequence that was at `block` has read the next block. Creates that block, or adds the pages that it lacks, and
  // moves the sequence's pin to it. `tables` are the sequence's.
  PrefixBlock* Advance(PrefixBlock* block, absl::Span<const int32_t> tokens, const PageTables& tables);

  // When the least recently used end was used; nullopt if there is no end.
  std::optional<uint64_t> OldestUse() const;
  // Evicts that end. REQUIRES: there is one.
  void EvictOldest();

  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }
  // How often a block got pages so far. Searches find nothing new unless this increases.
  int64_t filled() const { return filled_; }
  int64_t ends() const { return static_cast<int64_t>(ends_.size()); }
  // The number of ends evicted so far.
  int64_t evicted() const { return evicted_; }

  // The number of sequences at each block.
  using Pins = std::unordered_map<const PrefixBlock*, int64_t>;
  // Adds the pages that the index holds and that its ends need to the counts, [capacity of each pool].
  // Errors: INTERNAL if a block, its pins, or the order of the ends are inconsistent.
  absl::Status Audit(const Pins& pins, std::vector<PageHolders>& window, std::vector<PageHolders>& segment) const;

 private:
  using Blocks = std::unordered_multimap<uint64_t, std::unique_ptr<PrefixBlock>>;

  Blocks::const_iterator Find(const PrefixBlock& parent, uint64_t hash, absl::Span<const int32_t> tokens) const;
  PrefixBlock* Make(PrefixBlock& parent, uint64_t hash, absl::Span<const int32_t> tokens);
  // Adds the pages of `tables` that the block lacks.
  void FillIn(PrefixBlock& block, const PageTables& tables);

  // Makes the block, or one before it, an end if it should be one now; removes useless leaves.
  void UpdateEnds(PrefixBlock* block);
  bool MakeEnd(PrefixBlock& block);
  // Adds the pages that a sequence needs to begin at the block's end to `end.needed`. False, without any change, if
  // some of them were evicted.
  bool AddNeeds(const PrefixBlock& block, PrefixBlock& end) const;
  void RemoveEnd(PrefixBlock& block);
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
