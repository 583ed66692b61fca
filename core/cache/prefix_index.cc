#include "core/cache/prefix_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort::core {

// The finaliser of splitmix64, folded over the tokens.
uint64_t HashOfBlock(uint64_t history, absl::Span<const int32_t> tokens) {
  uint64_t hash = history;
  for (const int32_t token : tokens) {
    hash += 0x9E3779B97F4A7C15 + static_cast<uint64_t>(token);
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    hash ^= hash >> 31;
  }
  return hash;
}

PrefixIndex::PrefixIndex(CachePools& pools, const CacheGrid& grid, BlockHash hash)
    : pools_(pools), grid_(grid), hash_(hash) {}

PrefixIndex::Blocks::const_iterator PrefixIndex::Find(const PrefixBlock& parent, uint64_t hash,
                                                      absl::Span<const int32_t> tokens) const {
  const auto [first, last] = blocks_.equal_range(hash);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return entry.second->parent == &parent && absl::MakeConstSpan(entry.second->tokens) == tokens;
  });
  return found == last ? blocks_.end() : found;
}

PrefixBlock* PrefixIndex::FindLongest(PrefixBlock* from, absl::Span<const int32_t> tokens, int64_t max_tokens,
                                      PrefixSearch& search) {
  const int64_t max_end = std::min(max_tokens, static_cast<int64_t>(tokens.size()));
  PrefixBlock* block = from;
  while (block->end + grid_.block_tokens() <= max_end) {
    const absl::Span<const int32_t> next = tokens.subspan(block->end, grid_.block_tokens());
    const auto found = Find(*block, hash_(block->hash, next), next);
    if (found == blocks_.end()) break;
    block = found->second.get();
  }
  const int64_t known = (block->end - from->end) / grid_.block_tokens();
  while (block != from && !PagesAt(*block).has_value()) block = block->parent;
  search = {.found = block->end, .blocks = known, .filled = filled_};
  return block;
}

bool PrefixIndex::IsWorthRepeating(const PrefixSearch& search) const {
  const int64_t filled_since = filled_ - search.filled;
  return filled_since > search.blocks / 8 || filled_since < 0;  // negative: the search was in another cache
}

std::optional<PageTables> PrefixIndex::PagesAt(const PrefixBlock& end) const {
  PageTables tables = ZeroTables(grid_, end.end);
  std::array<int64_t, kStrips.size()> missing_end;  // the pages before it are missing
  for (const Strip strip : kStrips) missing_end[strip] = tables[strip].end();
  for (const PrefixBlock* block = &end; block->parent != nullptr; block = block->parent) {
    bool complete = true;
    for (const Strip strip : kStrips) {
      PageTable& table = tables[strip];
      const int64_t first_wanted = std::max<int64_t>(table.first, 0);
      const int64_t first = grid_.Pages(strip, block->end - grid_.block_tokens(), block->end).first;
      int64_t& missing = missing_end[strip];
      for (; missing > std::max(first, first_wanted); --missing) {
        const PageVersion& version = block->pages[strip][missing - 1 - first];
        if (!pools_.Of(strip).IsCurrent(version)) return std::nullopt;
        table.ids[missing - 1 - table.first] = version.page;
      }
      complete = complete && missing <= first_wanted;
    }
    if (complete) break;
  }
  return tables;
}

void PrefixIndex::Pin(PrefixBlock* block) {
  RemoveEnd(*block);
  ++block->pins;
  block->used = pools_.clock.Next();
}

void PrefixIndex::Unpin(PrefixBlock* block, uint64_t used) {
  --block->pins;
  block->used = std::max(block->used, used);
  UpdateEnds(block);
}

PrefixBlock* PrefixIndex::Advance(PrefixBlock* block, absl::Span<const int32_t> tokens, const PageTables& tables) {
  const uint64_t hash = hash_(block->hash, tokens);
  const auto found = Find(*block, hash, tokens);
  PrefixBlock* const next = found != blocks_.end() ? found->second.get() : Make(*block, hash, tokens);
  FillIn(*next, tables);
  Pin(next);
  Unpin(block, pools_.clock.Next());
  return next;
}

PrefixBlock* PrefixIndex::Make(PrefixBlock& parent, uint64_t hash, absl::Span<const int32_t> tokens) {
  auto block = std::make_unique<PrefixBlock>();
  block->parent = &parent;
  block->end = parent.end + grid_.block_tokens();
  block->hash = hash;
  block->tokens.assign(tokens.begin(), tokens.end());
  for (const Strip strip : kStrips) {
    const PageSpan span = grid_.Pages(strip, parent.end, block->end);
    block->pages[strip].resize(span.end - span.first);
  }
  ++parent.children;
  return blocks_.emplace(hash, std::move(block))->second.get();
}

void PrefixIndex::FillIn(PrefixBlock& block, const PageTables& tables) {
  bool filled = false;
  for (const Strip strip : kStrips) {
    PagePool& pool = pools_.Of(strip);
    int64_t page = grid_.Pages(strip, block.end - grid_.block_tokens(), block.end).first;
    for (PageVersion& version : block.pages[strip]) {
      if (!pool.IsCurrent(version) && page >= tables[strip].first) {
        version = pool.VersionOf(tables[strip].At(page));
        pool.Hold(version.page, Holder::kIndex);
        filled = true;
      }
      ++page;
    }
  }
  filled_ += filled ? 1 : 0;
}

void PrefixIndex::UpdateEnds(PrefixBlock* block) {
  while (block->parent != nullptr) {
    RemoveEnd(*block);
    if (block->pins > 0 || block->children == 1) return;
    if (MakeEnd(*block) || block->children > 1) return;
    block = Remove(block);
  }
}

bool PrefixIndex::MakeEnd(PrefixBlock& block) {
  if (!AddNeeds(block, block)) return false;
  block.is_end = true;
  const int64_t furthest = block.children == 0 ? block.end - grid_.ForkRoom() : block.end;
  const PrefixBlock* before = block.parent;
  for (; before->parent != nullptr && before->end >= furthest; before = before->parent) AddNeeds(*before, block);
  for (const Strip strip : kStrips) {
    std::vector<models::PageId>& needed = block.needed[strip];
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    for (const models::PageId page : needed) pools_.Of(strip).Need(page);
  }
  ends_.emplace(block.used, &block);
  return true;
}

bool PrefixIndex::AddNeeds(const PrefixBlock& block, PrefixBlock& end) const {
  const std::optional<PageTables> tables = PagesAt(block);
  if (!tables.has_value()) return false;
  for (const Strip strip : kStrips) {
    const std::vector<models::PageId>& pages = (*tables)[strip].ids;
    end.needed[strip].insert(end.needed[strip].end(), pages.begin(), pages.end());
  }
  return true;
}

void PrefixIndex::RemoveEnd(PrefixBlock& block) {
  if (!block.is_end) return;
  for (const Strip strip : kStrips) {
    for (const models::PageId page : block.needed[strip]) pools_.Of(strip).NoLongerNeed(page);
  }
  block.needed = {};
  block.is_end = false;
  ends_.erase(block.used);
}

PrefixBlock* PrefixIndex::Remove(PrefixBlock* leaf) {
  for (const Strip strip : kStrips) {
    PagePool& pool = pools_.Of(strip);
    for (const PageVersion& version : leaf->pages[strip]) {
      if (pool.IsCurrent(version)) pool.Release(version.page, Holder::kIndex);
    }
  }
  PrefixBlock* const parent = leaf->parent;
  --parent->children;
  const auto [first, last] = blocks_.equal_range(leaf->hash);
  blocks_.erase(std::find_if(first, last, [leaf](const auto& entry) { return entry.second.get() == leaf; }));
  return parent;
}

std::optional<uint64_t> PrefixIndex::OldestUse() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

void PrefixIndex::EvictOldest() {
  PrefixBlock* const block = ends_.begin()->second;
  ++evicted_;
  RemoveEnd(*block);
  if (block->children == 0) UpdateEnds(Remove(block));
}

absl::Status PrefixIndex::Audit(const Pins& pins, std::vector<PageHolders>& window,
                                std::vector<PageHolders>& segment) const {
  std::unordered_map<const PrefixBlock*, int64_t> children;
  int64_t ends = 0;
  for (const auto& [hash, block] : blocks_) {
    ++children[block->parent];
    for (const Strip strip : kStrips) {
      std::vector<PageHolders>& holders = strip == kWindowStrip ? window : segment;
      for (const PageVersion& version : block->pages[strip]) {
        if (pools_.Of(strip).IsCurrent(version)) ++holders[version.page].index;
      }
      for (const models::PageId page : block->needed[strip]) {
        if (page != models::kZeroPage) ++holders[page].needed;
      }
    }
    const auto standing = pins.find(block.get());
    if (block->pins != (standing == pins.end() ? 0 : standing->second)) {
      return absl::InternalError(absl::StrCat("the block that ends at ", block->end, " has a wrong number of pins"));
    }
    if (block->pins == 0 && block->children == 0 && !block->is_end) {
      return absl::InternalError(absl::StrCat("the chain that ends at ", block->end, " is not listed as an end"));
    }
    if (!block->is_end) continue;
    ++ends;
    const auto listed = ends_.find(block->used);
    if (listed == ends_.end() || listed->second != block.get() || block->pins > 0 || !PagesAt(*block).has_value()) {
      return absl::InternalError(
          absl::StrCat("the end at ", block->end, " is invalid: it is pinned, incomplete or not listed"));
    }
  }
  if (ends != static_cast<int64_t>(ends_.size())) return absl::InternalError("the list of ends has removed ends");
  for (const auto& [hash, block] : blocks_) {
    if (children[block.get()] != block->children) return absl::InternalError("a block has a wrong number of children");
  }
  if (children[&root_] != root_.children) return absl::InternalError("the root has a wrong number of children");
  return absl::OkStatus();
}

}  // namespace longshort::core
