// The pages of one kind: their holders, and the order of eviction. Integers only; the model owns the contents and the
// memory.
//
// Running sequences, parked ones and the prefix index hold pages, each any number of times. A page is
//
//   free     without holders
//   in use   held by a running sequence
//   idle     held only by parked sequences or the index; it can be evicted
//
// An idle page is spare if only the index holds it and no end of a chain needs it (Need). Spare pages are evicted
// first, the least recently used one at once. For other idle pages, the owner of parked sequences and chains decides
// which to evict; they are then free or spare.
//
// Thread: one worker's thread owns a pool; nothing here locks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/cache/cache_grid.h"
#include "models/model.h"

namespace longshort::core {

enum class Holder { kRunning, kParked, kIndex };

// A version of a page, as the index stored it. When the page leaves the index, its version number changes.
struct PageVersion {
  models::PageId page = models::kZeroPage;
  uint64_t version = 0;
};

// Counts uses; each number is larger than all before.
class UseClock final {
 public:
  uint64_t Next() { return ++last_; }

 private:
  uint64_t last_ = 0;
};

// The numbers of a page's holders.
struct PageHolders {
  int64_t running = 0;
  int64_t parked = 0;
  int64_t index = 0;
  int64_t needed = 0;  // by ends of chains

  friend bool operator==(const PageHolders&, const PageHolders&) = default;
};

class PagePool final {
 public:
  // All pages, 0 .. capacity-1, are free. `kind` is for messages: "window", "segment", "open chunk".
  // `clock` must outlive the pool.
  PagePool(const char* kind, int64_t capacity, UseClock& clock);

  // Takes a free page, or else the least recently used spare one, and holds it once for a running sequence. nullopt if
  // there is neither.
  std::optional<models::PageId> Take();

  // Has no effect on the zero page.
  void Hold(models::PageId page, Holder holder);
  // REQUIRES: such a holder holds it.
  void Release(models::PageId page, Holder holder);

  // An end of a chain needs the page, or needs it no longer. REQUIRES: the index holds it.
  void Need(models::PageId page);
  void NoLongerNeed(models::PageId page);

  // The current version, for the index. Check IsCurrent before each use: spare pages are evicted without notice.
  PageVersion VersionOf(models::PageId page) const { return {.page = page, .version = pages_[page].version}; }
  bool IsCurrent(const PageVersion& version) const;
  // Removes a page from the index: its version ends. REQUIRES: no end of a chain needs it.
  void StartNewVersion(models::PageId page);
  // As StartNewVersion, unless an end of a chain needs it.
  void Withdraw(models::PageId page);

  // Whether its only holder is one running sequence.
  bool IsExclusive(models::PageId page) const;

  int64_t capacity() const { return static_cast<int64_t>(pages_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t idle() const { return idle_; }
  // The idle pages that are spare.
  int64_t spare() const { return static_cast<int64_t>(spare_.size()); }
  int64_t in_use() const { return capacity() - free() - idle(); }
  // The number of spare pages evicted so far.
  int64_t evicted() const { return evicted_; }

  // Compares all pages with what their holders report, [capacity].
  // Errors: INTERNAL naming the first page that breaks an invariant.
  absl::Status CheckInvariants(const std::vector<PageHolders>& expected) const;

 private:
  enum class State { kFree, kSpare, kKept, kInUse };
  struct Page {
    PageHolders held;
    uint64_t version = 0;
    uint64_t used = 0;  // when the last running sequence released it
  };

  static State StateOf(const Page& page);
  // Changes a page and updates the lists and counts.
  template <typename Change>
  void Apply(models::PageId id, Change change);

  const char* kind_;
  UseClock& clock_;
  std::vector<Page> pages_;           // [capacity]
  std::vector<models::PageId> free_;  // a stack: the page freed last is taken first, while it is warm
  std::set<std::pair<uint64_t, models::PageId>> spare_;  // by last use
  int64_t idle_ = 0;
  int64_t evicted_ = 0;
};

// Page `first + i` of a strip is ids[i]; kZeroPage before the sequence's first token.
struct PageTable {
  int64_t first = 0;
  std::vector<models::PageId> ids;

  int64_t end() const { return first + static_cast<int64_t>(ids.size()); }
  models::PageId At(int64_t page) const { return ids[page - first]; }
  models::PageRange Range() const { return {.first = first, .ids = ids}; }
};

// Indexed by Strip.
using PageTables = std::array<PageTable, kStrips.size()>;

// The tables of a sequence that begins at `position`: only zero memory.
inline PageTables ZeroTables(const CacheGrid& grid, int64_t position) {
  PageTables tables;
  for (const Strip strip : kStrips) {
    const PageSpan span = grid.KeptAt(strip, position);
    tables[strip] = {.first = span.first, .ids = std::vector<models::PageId>(span.end - span.first, models::kZeroPage)};
  }
  return tables;
}

// The pools of a cache, one for each kind of page. Memory and segment vectors are on segment pages.
struct CachePools {
  explicit CachePools(const models::CachePages& capacity)
      : window("window", capacity.window, clock),
        segment("segment", capacity.segment, clock),
        open_chunk("open chunk", capacity.open_chunk, clock) {}

  PagePool& Of(Strip strip) { return strip == kWindowStrip ? window : segment; }
  const PagePool& Of(Strip strip) const { return strip == kWindowStrip ? window : segment; }

  UseClock clock;
  PagePool window;
  PagePool segment;
  PagePool open_chunk;
};

}  // namespace longshort::core
