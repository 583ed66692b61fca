// The free pages of a model's cache, for tests that run sequences without the engine's cache (core/cache).
//
// Invariant: free and held pages together are 0 .. capacity-1, each once (CheckInvariants walks this).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort {

// The free pages of one kind.
class RingPool {
 public:
  // All of the pages 0 .. capacity-1 are free. `kind` is for messages: "window", "segment", "open chunk".
  RingPool(const char* kind, int64_t capacity);

  // Takes `count` free pages.
  // Errors: RESOURCE_EXHAUSTED if fewer are free; then nothing was taken.
  absl::StatusOr<std::vector<models::PageId>> Acquire(int64_t count);
  // Gives pages back. REQUIRES: each came from Acquire of this pool and was not given back since.
  void Release(absl::Span<const models::PageId> pages);

  int64_t capacity() const { return static_cast<int64_t>(held_.size()); }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int64_t used() const { return capacity() - free(); }

  // Walks all pages. Errors: INTERNAL naming the first page that breaks the invariant.
  absl::Status CheckInvariants() const;

 private:
  const char* kind_;
  std::vector<models::PageId> free_;  // a stack: the page freed last is taken first, while it is warm
  std::vector<bool> held_;            // [capacity]
};

// The pools of a cache, one for each kind of page.
struct RingPools {
  explicit RingPools(const models::CachePages& capacity)
      : window("window", capacity.window),
        segment("segment", capacity.segment),
        open_chunk("open chunk", capacity.open_chunk) {}

  models::CachePages used() const { return {window.used(), segment.used(), open_chunk.used()}; }
  models::CachePages free() const { return {window.free(), segment.free(), open_chunk.free()}; }
  absl::Status CheckInvariants() const;

  RingPool window;
  RingPool segment;
  RingPool open_chunk;
};

}  // namespace longshort
