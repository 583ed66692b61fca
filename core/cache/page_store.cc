#include "core/cache/page_store.h"

#include <algorithm>
#include <atomic>

#include "base/status_macros.h"
#include "core/cache/cached_sequence.h"

namespace longshort::core {
namespace {

constexpr int64_t kMinIndexBytes = int64_t{16} << 20;

// The approximate size of a block of the prefix index, with its hash table entry, its tokens and its pages.
int64_t BlockBytes(const CacheGrid& grid) {
  constexpr int64_t kBesideTokensAndPages = 400;
  int64_t pages = 0;
  for (const Strip strip : kStrips) pages += grid.Pages(strip, 0, grid.block_tokens()).end;
  return kBesideTokensAndPages + grid.block_tokens() * static_cast<int64_t>(sizeof(int32_t)) +
         pages * static_cast<int64_t>(sizeof(PageVersion));
}

}  // namespace

PageStore::PageStore(models::LanguageModel& model, const models::CachePages& capacity, BlockHash hash)
    : model(model),
      grid(model.info()),
      pools(capacity),
      index(pools, grid, hash),
      reservations(capacity),
      max_blocks_(std::max(kMinIndexBytes, Bytes(capacity, model.info().page_bytes) / 8) / BlockBytes(grid)) {}

models::CachePages SequenceState::Pages() const {
  const auto count = [](const PageTable& table) {
    return static_cast<int64_t>(table.ids.size()) - std::count(table.ids.begin(), table.ids.end(), models::kZeroPage);
  };
  return {.window = count(tables[kWindowStrip]),
          .segment = count(tables[kMemoryStrip]) + count(tables[kSegmentStrip]),
          .open_chunk = open_chunk == models::kZeroPage ? 0 : 1};
}

PagePool& PageStore::PoolOf(models::PageKind kind) {
  switch (kind) {
    case models::PageKind::kWindow:
      return pools.window;
    case models::PageKind::kSegment:
      return pools.segment;
    case models::PageKind::kOpenChunk:
      break;
  }
  return pools.open_chunk;
}

std::optional<models::PageId> PageStore::Take(PagePool& pool) {
  std::optional<models::PageId> page = pool.Take();
  while (!page.has_value() && EvictOldest(pool)) page = pool.Take();
  return page;
}

bool PageStore::EvictOldest(const PagePool& pool) {
  const std::optional<uint64_t> end = &pool == &pools.open_chunk ? std::nullopt : index.OldestUse();
  if (!parked.empty() && (!end.has_value() || parked_by_use.begin()->first < *end)) {
    ++evicted_parked;
    RemoveParked(parked_by_use.begin()->second);
    return true;
  }
  if (end.has_value()) index.EvictOldest();
  return end.has_value();
}

void PageStore::BoundIndex() {
  if (index.blocks() <= max_blocks_) return;
  int64_t running_blocks = 0;  // an upper bound: sequences may share blocks
  for (const CachedSequence* const sequence : running) running_blocks += sequence->position() / grid.block_tokens();
  while (index.blocks() > max_blocks_ + running_blocks && EvictOldest(pools.window)) {
  }
}

absl::StatusOr<models::PageId> PageStore::MakeOwn(models::PageKind kind, models::PageId page) {
  PagePool& pool = PoolOf(kind);
  if (pool.IsExclusive(page)) return page;
  const std::optional<models::PageId> copy = Take(pool);
  if (!copy.has_value()) {  // other sequences hold no more than they reserved, so only the index can hold it, too
    pool.StartNewVersion(page);
    if (!pool.IsExclusive(page)) return absl::InternalError("more pages are in use than were reserved");
    return page;
  }
  ++copied_pages;
  const absl::Status copied = model.CopyPage(kind, page, *copy);
  pool.Release(copied.ok() ? page : *copy, Holder::kRunning);
  LS_RETURN_IF_ERROR(copied);
  return *copy;
}

void PageStore::Hold(const SequenceState& state, Holder holder) {
  for (const Strip strip : kStrips) {
    for (const models::PageId page : state.tables[strip].ids) pools.Of(strip).Hold(page, holder);
  }
  pools.open_chunk.Hold(state.open_chunk, holder);
}

void PageStore::Release(const SequenceState& state, Holder holder) {
  for (const Strip strip : kStrips) {
    for (const models::PageId page : state.tables[strip].ids) pools.Of(strip).Release(page, holder);
  }
  pools.open_chunk.Release(state.open_chunk, holder);
}

ParkedId PageStore::Park(SequenceState state) {
  static std::atomic<ParkedId> next_id = 1;
  const ParkedId id = next_id.fetch_add(1, std::memory_order_relaxed);
  const uint64_t used = pools.clock.Next();
  Hold(state, Holder::kParked);
  Release(state, Holder::kRunning);
  parked.emplace(id, ParkedSequence{.state = std::move(state), .used = used});
  parked_by_use.emplace(used, id);
  return id;
}

void PageStore::Use(ParkedId id) {
  ParkedSequence& sequence = parked.at(id);
  parked_by_use.erase(sequence.used);
  sequence.used = pools.clock.Next();
  parked_by_use.emplace(sequence.used, id);
}

SequenceState PageStore::Unpark(ParkedId id) {
  const auto found = parked.find(id);
  SequenceState state = std::move(found->second.state);
  parked_by_use.erase(found->second.used);
  parked.erase(found);
  Hold(state, Holder::kRunning);
  Release(state, Holder::kParked);
  return state;
}

void PageStore::RemoveParked(ParkedId id) {
  const auto found = parked.find(id);
  if (found == parked.end()) return;
  const ParkedSequence sequence = std::move(found->second);
  parked_by_use.erase(sequence.used);
  parked.erase(found);
  Release(sequence.state, Holder::kParked);
  if (sequence.state.block != nullptr) index.Unpin(sequence.state.block, sequence.used);
}

}  // namespace longshort::core
