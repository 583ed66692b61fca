#include "core/cache/paged_cache.h"

#include <atomic>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"

namespace longshort::core {
namespace {

uint64_t NextCacheId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PagedCache>> PagedCache::Create(models::LanguageModel& model,
                                                               const models::CachePages& capacity, BlockHash hash) {
  LS_RETURN_IF_ERROR(model.AllocateCache(capacity));
  return absl::WrapUnique(new PagedCache(model, capacity, hash));
}

PagedCache::PagedCache(models::LanguageModel& model, const models::CachePages& capacity, BlockHash hash)
    : id_(NextCacheId()), store_(model, capacity, hash), capacity_(capacity) {}

absl::Status PagedCache::CheckFits(int64_t max_tokens) const {
  return CheckFitsAlone(max_tokens, store_.model.info(), capacity_);
}

bool PagedCache::FitsNow(int64_t max_tokens) const {
  return FitIn(store_.grid.PagesForSequence(max_tokens), store_.reservations.Unclaimed());
}

absl::StatusOr<std::unique_ptr<CachedSequence>> PagedCache::Admit(int64_t max_tokens) {
  if (!FitsNow(max_tokens)) return absl::UnavailableError("the cache has no room for the sequence now");
  return absl::WrapUnique(new CachedSequence(store_, store_.grid.PagesForSequence(max_tokens)));
}

absl::StatusOr<std::unique_ptr<CachedSequence>> PagedCache::Begin(absl::Span<const int32_t> tokens, int64_t max_reused,
                                                                  int64_t max_tokens) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> sequence, Admit(max_tokens));
  LS_RETURN_IF_ERROR(
      sequence->StartAt(store_.index.FindLongest(store_.index.root(), tokens, max_reused, sequence->search_)));
  sequence->reused_tokens_ = sequence->position();
  ++(sequence->reused_tokens_ > 0 ? counters_.hits : counters_.misses);
  counters_.reused_tokens += sequence->reused_tokens_;
  return sequence;
}

int64_t PagedCache::Findable(absl::Span<const int32_t> tokens, int64_t max_reused, PrefixSearch& last) {
  if (IsWorthSearching(last)) store_.index.FindLongest(store_.index.root(), tokens, max_reused, last);
  return last.found;
}

absl::StatusOr<int64_t> PagedCache::SkipRead(CachedSequence& sequence, absl::Span<const int32_t> tokens,
                                             int64_t max_reused) {
  if (sequence.state_.block == nullptr || !store_.index.IsWorthRepeating(sequence.search_)) return 0;
  PrefixBlock* const block = store_.index.FindLongest(sequence.state_.block, tokens, max_reused, sequence.search_);
  const int64_t skipped = block->end - sequence.position();
  if (skipped <= 0) return 0;
  LS_RETURN_IF_ERROR(sequence.StartAt(block));
  counters_.reused_tokens += skipped;
  return skipped;
}

absl::StatusOr<std::unique_ptr<CachedSequence>> PagedCache::BeginAt(int64_t position, int64_t max_tokens) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> sequence, Admit(max_tokens));
  LS_RETURN_IF_ERROR(position == 0 ? sequence->StartAt(store_.index.root()) : sequence->StartWithoutHistory(position));
  ++counters_.misses;
  return sequence;
}

ParkedId PagedCache::Park(std::unique_ptr<CachedSequence> sequence) { return store_.Park(sequence->TakeState()); }

absl::StatusOr<std::unique_ptr<CachedSequence>> PagedCache::Resume(ParkedId id, int64_t max_tokens) {
  if (!IsParked(id)) return absl::NotFoundError("the parked sequence was evicted");
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> sequence, Admit(max_tokens));
  sequence->Adopt(store_.Unpark(id));
  sequence->reused_tokens_ = sequence->position();
  ++counters_.resumed;
  return sequence;
}

absl::StatusOr<ParkedPages> PagedCache::Export(ParkedId id) {
  if (!IsParked(id)) return absl::NotFoundError("the parked sequence was evicted");
  store_.Use(id);
  const SequenceState& state = store_.parked.at(id).state;
  ParkedPages pages{.begin = state.begin, .position = state.position, .contents = {}};
  pages.contents.reserve(BytesThatMove(store_.grid, page_bytes(), state.begin, state.position));
  for (const MovingPage& moving : PagesThatMove(store_.grid, state.begin, state.position)) {
    const models::PageId page =
        moving.kind == models::PageKind::kOpenChunk ? state.open_chunk : state.tables[moving.strip].At(moving.page);
    LS_ASSIGN_OR_RETURN(const std::string bytes, store_.model.ReadPage(moving.kind, page, moving.rows));
    pages.contents += bytes;
  }
  return pages;
}

absl::StatusOr<ParkedId> PagedCache::Import(const ParkedPages& pages, absl::Span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  LS_RETURN_IF_ERROR(CheckParkedPages(store_.grid, page_bytes(), pages, count));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> sequence, Admit(pages.position + 1));
  LS_RETURN_IF_ERROR(sequence->StartFrom(pages, page_bytes(), tokens));
  ++counters_.imported;
  return Park(std::move(sequence));
}

CacheState PagedCache::state() const {
  const CachePools& pools = store_.pools;
  CacheState state{
      .in_use = {pools.window.in_use(), pools.segment.in_use(), pools.open_chunk.in_use()},
      .idle = {pools.window.idle(), pools.segment.idle(), pools.open_chunk.idle()},
      .spare = {pools.window.spare(), pools.segment.spare(), pools.open_chunk.spare()},
      .free = {pools.window.free(), pools.segment.free(), pools.open_chunk.free()},
      .reserved = store_.reservations.claimed(),
      .parked_sequences = static_cast<int64_t>(store_.parked.size()),
      .ends = store_.index.ends(),
      .counters = counters_,
  };
  state.counters.copied_pages = store_.copied_pages;
  state.counters.evicted_parked = store_.evicted_parked;
  state.counters.evicted_ends = store_.index.evicted();
  state.counters.evicted_window = pools.window.evicted();
  state.counters.evicted_segment = pools.segment.evicted();
  return state;
}

absl::Status PagedCache::CheckInvariants() const {
  std::vector<PageHolders> window(capacity_.window), segment(capacity_.segment), open_chunk(capacity_.open_chunk);
  PrefixIndex::Pins pins;
  const auto count = [&](const SequenceState& state, int64_t PageHolders::*holder) {
    for (const Strip strip : kStrips) {
      std::vector<PageHolders>& holders = strip == kWindowStrip ? window : segment;
      for (const models::PageId page : state.tables[strip].ids) {
        if (page != models::kZeroPage) ++(holders[page].*holder);
      }
    }
    if (state.block != nullptr) ++pins[state.block];
    if (state.open_chunk != models::kZeroPage) ++(open_chunk[state.open_chunk].*holder);
  };
  models::CachePages claimed;
  for (const CachedSequence* sequence : store_.running) {
    count(sequence->state_, &PageHolders::running);
    claimed = claimed + sequence->claim_;
    if (!FitIn(sequence->state_.Pages(), sequence->claim_))
      return absl::InternalError("a sequence holds unclaimed pages");
  }
  for (const auto& [id, parked] : store_.parked) count(parked.state, &PageHolders::parked);
  if (!FitIn(claimed, store_.reservations.claimed()) || !FitIn(store_.reservations.claimed(), claimed)) {
    return absl::InternalError("the sum of the claims is wrong");
  }
  if (!FitIn(claimed, capacity_)) return absl::InternalError("the claims exceed the cache's capacity");
  LS_RETURN_IF_ERROR(store_.index.Audit(pins, window, segment));
  LS_RETURN_IF_ERROR(store_.pools.window.CheckInvariants(window));
  LS_RETURN_IF_ERROR(store_.pools.segment.CheckInvariants(segment));
  return store_.pools.open_chunk.CheckInvariants(open_chunk);
}

}  // namespace longshort::core
