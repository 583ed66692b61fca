#include "core/cache/page_pool.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"

namespace longshort::core {

PagePool::PagePool(const char* kind, int64_t capacity, UseClock& clock) : kind_(kind), clock_(clock), pages_(capacity) {
  free_.reserve(capacity);
  for (int64_t page = capacity - 1; page >= 0; --page) free_.push_back(static_cast<models::PageId>(page));
}

PagePool::State PagePool::StateOf(const Page& page) {
  const PageHolders& held = page.held;
  if (held.running > 0) return State::kInUse;
  if (held.parked > 0 || held.needed > 0) return State::kKept;
  return held.index > 0 ? State::kSpare : State::kFree;
}

template <typename Change>
void PagePool::Apply(models::PageId id, Change change) {
  Page& page = pages_[id];
  const State before = StateOf(page);
  const std::pair<uint64_t, models::PageId> place(page.used, id);
  change(page);
  const State after = StateOf(page);
  if (before == after) return;
  const auto is_idle = [](State state) { return state == State::kSpare || state == State::kKept; };
  idle_ += (is_idle(after) ? 1 : 0) - (is_idle(before) ? 1 : 0);
  if (before == State::kSpare) spare_.erase(place);
  if (before == State::kInUse) page.used = clock_.Next();
  if (after == State::kSpare) spare_.emplace(page.used, id);
  if (after == State::kFree) free_.push_back(id);
}

std::optional<models::PageId> PagePool::Take() {
  if (free_.empty() && !spare_.empty()) {
    ++evicted_;
    StartNewVersion(spare_.begin()->second);
  }
  if (free_.empty()) return std::nullopt;
  const models::PageId id = free_.back();
  free_.pop_back();
  Apply(id, [](Page& page) { page.held.running = 1; });
  return id;
}

void PagePool::Hold(models::PageId page, Holder holder) {
  if (page == models::kZeroPage) return;
  assert(StateOf(pages_[page]) != State::kFree);
  Apply(page, [holder](Page& page) {
    if (holder == Holder::kRunning) ++page.held.running;
    if (holder == Holder::kParked) ++page.held.parked;
    if (holder == Holder::kIndex) ++page.held.index;
  });
}

void PagePool::Release(models::PageId page, Holder holder) {
  if (page == models::kZeroPage) return;
  Apply(page, [holder](Page& page) {
    if (holder == Holder::kRunning) --page.held.running;
    if (holder == Holder::kParked) --page.held.parked;
    if (holder == Holder::kIndex) --page.held.index;
    assert(page.held.running >= 0 && page.held.parked >= 0 && page.held.index >= 0);
  });
}

void PagePool::Need(models::PageId page) {
  if (page == models::kZeroPage) return;
  Apply(page, [](Page& page) { ++page.held.needed; });
}

void PagePool::NoLongerNeed(models::PageId page) {
  if (page == models::kZeroPage) return;
  Apply(page, [](Page& page) { --page.held.needed; });
}

bool PagePool::IsCurrent(const PageVersion& version) const {
  return version.page != models::kZeroPage && pages_[version.page].version == version.version;
}

void PagePool::StartNewVersion(models::PageId page) {
  assert(pages_[page].held.needed == 0);
  Apply(page, [](Page& page) {
    page.held.index = 0;
    ++page.version;
  });
}

void PagePool::Withdraw(models::PageId page) {
  if (page != models::kZeroPage && pages_[page].held.needed == 0) StartNewVersion(page);
}

bool PagePool::IsExclusive(models::PageId page) const { return pages_[page].held == PageHolders{.running = 1}; }

absl::Status PagePool::CheckInvariants(const std::vector<PageHolders>& expected) const {
  const auto broken = [this](int64_t page, const char* what) {
    return absl::InternalError(absl::StrCat(kind_, " page ", page, " ", what));
  };
  std::vector<int> times_free(pages_.size(), 0);
  for (const models::PageId page : free_) ++times_free[page];
  int64_t idle = 0;
  int64_t spare = 0;
  for (int64_t id = 0; id < capacity(); ++id) {
    const Page& page = pages_[id];
    const State state = StateOf(page);
    if (!(page.held == expected[id])) return broken(id, "has other holders than those that report it");
    if (times_free[id] != (state == State::kFree ? 1 : 0))
      return broken(id, "is free and held, or lost, or free twice");
    const bool listed = spare_.contains({page.used, static_cast<models::PageId>(id)});
    if (listed != (state == State::kSpare)) return broken(id, "is spare and not listed as spare, or the reverse");
    if (page.held.needed > 0 && page.held.index == 0) return broken(id, "is needed by a chain and not in the index");
    idle += state == State::kSpare || state == State::kKept ? 1 : 0;
    spare += state == State::kSpare ? 1 : 0;
  }
  if (idle != idle_ || spare != static_cast<int64_t>(spare_.size())) {
    return absl::InternalError(absl::StrCat(kind_, " pages: ", idle_, " are counted as idle, there are ", idle));
  }
  return absl::OkStatus();
}

}  // namespace longshort::core
