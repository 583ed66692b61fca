#include "core/cache/cached_sequence.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {

CachedSequence::CachedSequence(PageStore& store, const models::CachePages& reserved)
    : store_(store), reserved_(reserved) {
  store_.running.insert(this);
  UpdateClaim();
}

CachedSequence::~CachedSequence() {
  const SequenceState state = TakeState();
  store_.Release(state, Holder::kRunning);
  if (state.block != nullptr) store_.index.Unpin(state.block, store_.pools.clock.Next());
  store_.reservations.Change(claim_, {});
  store_.running.erase(this);
}

SequenceState CachedSequence::TakeState() { return std::exchange(state_, {}); }

void CachedSequence::Adopt(SequenceState state) {
  state_ = std::move(state);
  UpdateClaim();
}

void CachedSequence::UpdateClaim() {
  const models::CachePages claim = Larger(reserved_, state_.Pages());
  store_.reservations.Change(claim_, claim);
  claim_ = claim;
}

absl::Status CachedSequence::StartAt(PrefixBlock* block) {
  SequenceState state;
  state.tables = *store_.index.PagesAt(*block);
  state.position = block->end;
  state.block = block;
  store_.index.Pin(block);
  store_.Hold(state, Holder::kRunning);
  state.open_chunk = std::exchange(state_.open_chunk, models::kZeroPage);  // its rows are not needed at a block's end
  const SequenceState before = TakeState();
  store_.Release(before, Holder::kRunning);
  if (before.block != nullptr) store_.index.Unpin(before.block, store_.pools.clock.Next());
  Adopt(std::move(state));
  if (state_.open_chunk == models::kZeroPage) LS_RETURN_IF_ERROR(TakeOpenChunk());
  return OwnPagesToWrite();
}

absl::Status CachedSequence::StartWithoutHistory(int64_t position) {
  state_.tables = ZeroTables(store_.grid, position);
  state_.begin = state_.position = position;
  return TakeOpenChunk();
}

absl::Status CachedSequence::StartFrom(const ParkedPages& pages, const models::CachePages& page_bytes,
                                       absl::Span<const int32_t> tokens) {
  LS_RETURN_IF_ERROR(TakeOpenChunk());
  state_.tables = ZeroTables(store_.grid, pages.position);
  std::string_view contents = pages.contents;
  for (const MovingPage& moving : PagesThatMove(store_.grid, pages.begin, pages.position)) {
    models::PageId page = state_.open_chunk;
    if (moving.kind != models::PageKind::kOpenChunk) {
      const std::optional<models::PageId> taken = store_.Take(store_.PoolOf(moving.kind));
      if (!taken.has_value()) return absl::InternalError("no page is left for a sequence that reserved it");
      PageTable& table = state_.tables[moving.strip];
      page = table.ids[moving.page - table.first] = *taken;
    }
    const int64_t bytes = page_bytes.Of(moving.kind);
    LS_RETURN_IF_ERROR(store_.model.WritePage(moving.kind, page, contents.substr(0, bytes)));
    contents.remove_prefix(bytes);
  }
  UpdateClaim();
  state_.begin = pages.begin;
  state_.position = pages.position;
  const int64_t block = store_.grid.BlockBegin(pages.position);
  state_.tail.assign(tokens.begin() + block, tokens.begin() + pages.position);
  return absl::OkStatus();
}

absl::Status CachedSequence::TakeOpenChunk() {
  const std::optional<models::PageId> page = store_.Take(store_.pools.open_chunk);
  if (!page.has_value()) return absl::InternalError("no page is left for an open chunk that is reserved");
  state_.open_chunk = *page;
  UpdateClaim();
  return absl::OkStatus();
}

absl::Status CachedSequence::OwnPagesToWrite() {
  for (const Strip strip : kStrips) {
    PageTable& table = state_.tables[strip];
    if (table.ids.empty() || table.ids.back() == models::kZeroPage) continue;
    if (!store_.grid.EndsInsidePage(strip, state_.position)) continue;
    const models::PageKind kind = strip == kWindowStrip ? models::PageKind::kWindow : models::PageKind::kSegment;
    LS_ASSIGN_OR_RETURN(table.ids.back(), store_.MakeOwn(kind, table.ids.back()));
  }
  return absl::OkStatus();
}

int64_t CachedSequence::NewPages(Strip strip, int64_t end) const {
  return std::max<int64_t>(0, store_.grid.Pages(strip, state_.position, end).end - state_.tables[strip].end());
}

int64_t CachedSequence::MaxTokens(int64_t wanted) const {
  const models::CachePages room = claim_ + store_.reservations.Unclaimed() - state_.Pages();
  int64_t end = state_.position + wanted;
  const int64_t block_end = store_.grid.BlockBegin(state_.position) + store_.grid.block_tokens();
  while (end > block_end) {
    const models::CachePages more = {.window = NewPages(kWindowStrip, end),
                                     .segment = NewPages(kMemoryStrip, end) + NewPages(kSegmentStrip, end),
                                     .open_chunk = 0};
    if (FitIn(more, room)) break;
    end = store_.grid.BlockBegin(end - 1);
  }
  return end - state_.position;
}

absl::Status CachedSequence::FillIn(models::Slice& slice) {
  const int64_t end = state_.position + static_cast<int64_t>(slice.tokens.size());
  for (const Strip strip : kStrips) {
    for (int64_t count = NewPages(strip, end); count > 0; --count) {
      const std::optional<models::PageId> page = store_.Take(store_.pools.Of(strip));
      if (!page.has_value()) {
        UpdateClaim();
        return absl::InternalError(absl::StrCat("no page is left at position ", state_.position, " of a sequence"));
      }
      state_.tables[strip].ids.push_back(*page);
    }
  }
  UpdateClaim();
  slice.position = state_.position;
  slice.segment_start = store_.grid.SegmentStart(state_.position);
  slice.window_pages = state_.tables[kWindowStrip].Range();
  slice.memory_pages = state_.tables[kMemoryStrip].Range();
  slice.segment_pages = state_.tables[kSegmentStrip].Range();
  slice.open_chunk = state_.open_chunk;
  return absl::OkStatus();
}

void CachedSequence::OnRead(absl::Span<const int32_t> tokens) {
  state_.position += static_cast<int64_t>(tokens.size());
  const auto block_tokens = static_cast<size_t>(store_.grid.block_tokens());
  while (!tokens.empty()) {
    const absl::Span<const int32_t> next = tokens.first(std::min(tokens.size(), block_tokens - state_.tail.size()));
    state_.tail.insert(state_.tail.end(), next.begin(), next.end());
    tokens.remove_prefix(next.size());
    if (state_.tail.size() < block_tokens) break;
    if (state_.block != nullptr) state_.block = store_.index.Advance(state_.block, state_.tail, state_.tables);
    state_.tail.clear();
  }
  for (const Strip strip : kStrips) ReleasePagesBefore(strip, store_.grid.KeptAt(strip, state_.position).first);
  UpdateClaim();
  store_.BoundIndex();
}

void CachedSequence::Withdraw() {
  for (const Strip strip : kStrips) {
    for (const models::PageId page : state_.tables[strip].ids) store_.pools.Of(strip).Withdraw(page);
  }
}

absl::StatusOr<int64_t> CachedSequence::RollBack(int64_t position) {
  const int64_t chunk = store_.grid.chunk_size();
  const int64_t target = position / chunk == state_.position / chunk ? position : position / chunk * chunk;
  const int64_t block_begin = store_.grid.BlockBegin(state_.position);
  // A sequence that began after token 0 is exact only at its current position.
  if (target == state_.position) return target;
  if (target >= block_begin && state_.begin == 0) {
    state_.position = target;
    state_.tail.resize(target - block_begin);
    for (const Strip strip : kStrips) ReleasePagesFrom(strip, store_.grid.KeptAt(strip, target).end);
    UpdateClaim();
    return target;
  }
  const int64_t no_further = store_.grid.RecomputeFrom(position);
  for (PrefixBlock* block = state_.block; block != nullptr && block->end >= no_further; block = block->parent) {
    if (block->end > position || !store_.index.PagesAt(*block).has_value()) continue;
    LS_RETURN_IF_ERROR(StartAt(block));
    return block->end;
  }
  return absl::NotFoundError(absl::StrCat("the rows before position ", position, " were evicted"));
}

void CachedSequence::ReleasePagesBefore(Strip strip, int64_t page) {
  PageTable& table = state_.tables[strip];
  const int64_t count = std::clamp<int64_t>(page - table.first, 0, static_cast<int64_t>(table.ids.size()));
  for (int64_t i = 0; i < count; ++i) store_.pools.Of(strip).Release(table.ids[i], Holder::kRunning);
  table.ids.erase(table.ids.begin(), table.ids.begin() + count);
  table.first += count;
}

void CachedSequence::ReleasePagesFrom(Strip strip, int64_t page) {
  PageTable& table = state_.tables[strip];
  while (table.end() > std::max(page, table.first)) {
    store_.pools.Of(strip).Release(table.ids.back(), Holder::kRunning);
    table.ids.pop_back();
  }
}

}  // namespace longshort::core
