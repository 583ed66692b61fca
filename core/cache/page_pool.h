// The pages of one kind: who holds each, and which idle one is given up first. Integers only: what a page holds, and
// where, is the model's business.
//
// A page is held by running sequences, by parked ones and by the prefix index, each any number of times. It is
//
//   free     held by nobody
//   in use   held by a running sequence
//   idle     held by parked sequences or the index only; what it holds may be given up for something new
//
// An idle page is spare if only the index holds it and no hit at a chain's end needs it (Need): spare pages are given
// up first, the least recently used one of them at once. Of the other idle pages, the owner of parked sequences and
// chains decides which go; they are then free or spare.
//
// Thread: one worker's thread owns a pool; nothing here locks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/model.h"

namespace longshort::core {

enum class Holder { kRunning, kParked, kIndex };

// A page as it was when the index wrote this down: its version has another number once it was taken from the index.
struct PageVersion {
  models::PageId page = models::kZeroPage;
  uint64_t version = 0;
};

// Counts uses; every use is later than the ones before.
class UseClock final {
 public:
  uint64_t Next() { return ++last_; }

 private:
  uint64_t last_ = 0;
};

// How often a page is held.
struct PageHolders {
  int64_t running = 0;
  int64_t parked = 0;
  int64_t index = 0;
  int64_t needed = 0;  // by chains' ends

  friend bool operator==(const PageHolders&, const PageHolders&) = default;
};

class PagePool final {
 public:
  // All of the pages 0 .. capacity-1 are free. `kind` is for messages: "window", "segment", "open chunk".
  // `clock` must outlive the pool.
  PagePool(const char* kind, int64_t capacity, UseClock& clock);

  // A free page, or else the spare one that was used longest ago; now held once, by a running sequence. Nothing if
  // there is neither.
  std::optional<models::PageId> Take();

  // The zero page needs no holding: nothing happens.
  void Hold(models::PageId page, Holder holder);
  // REQUIRES: held by such a holder.
  void Release(models::PageId page, Holder holder);

  // A chain's end needs the page, or does no longer. REQUIRES: the index holds it.
  void Need(models::PageId page);
  void NoLongerNeed(models::PageId page);

  // The page as it is now, for the index, which must ask IsCurrent before each use: spare pages go without a word.
  PageVersion VersionOf(models::PageId page) const { return {.page = page, .version = pages_[page].version}; }
  bool IsCurrent(const PageVersion& version) const;
  // Takes a page out of the index altogether: its version ends. REQUIRES: no chain's end needs it.
  void StartNewVersion(models::PageId page);
  // The same, unless a chain's end needs it.
  void Withdraw(models::PageId page);

  // Whether one running sequence holds it, and nobody else.
  bool IsExclusive(models::PageId page) const;

  int64_t capacity() const { return static_cast<int64_t>(pages_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t idle() const { return idle_; }
  // Of those that are idle.
  int64_t spare() const { return static_cast<int64_t>(spare_.size()); }
  int64_t in_use() const { return capacity() - free() - idle(); }
  // Spare pages that were given up so far.
  int64_t evicted() const { return evicted_; }

  // Walks all pages and compares them with what their holders say, [capacity].
  // Errors: INTERNAL naming the first page that breaks an invariant.
  absl::Status CheckInvariants(const std::vector<PageHolders>& expected) const;

 private:
  enum class State { kFree, kSpare, kKept, kInUse };
  struct Page {
    PageHolders held;
    uint64_t version = 0;
    uint64_t used = 0;  // when the last running sequence let go of it
  };

  static State StateOf(const Page& page);
  // Makes a change to a page and keeps the lists and counts right.
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

}  // namespace longshort::core
