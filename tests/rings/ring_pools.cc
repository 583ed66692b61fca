#include "tests/rings/ring_pools.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {

RingPool::RingPool(const char* kind, int64_t capacity) : kind_(kind), held_(capacity, false) {
  free_.reserve(capacity);
  for (int64_t page = capacity - 1; page >= 0; --page) free_.push_back(static_cast<models::PageId>(page));
}

absl::StatusOr<std::vector<models::PageId>> RingPool::Acquire(int64_t count) {
  if (count > free()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(count, " ", kind_, " pages wanted, ", free(), " of ", capacity(), " are free"));
  }
  std::vector<models::PageId> pages(free_.end() - count, free_.end());
  free_.resize(free_.size() - count);
  for (models::PageId page : pages) held_[page] = true;
  return pages;
}

void RingPool::Release(absl::Span<const models::PageId> pages) {
  for (models::PageId page : pages) {
    held_[page] = false;
    free_.push_back(page);
  }
}

absl::Status RingPool::CheckInvariants() const {
  std::vector<bool> seen = held_;
  for (models::PageId page : free_) {
    if (page < 0 || page >= capacity()) {
      return absl::InternalError(absl::StrCat(kind_, " page ", page, " does not exist, but is free"));
    }
    if (seen[page]) return absl::InternalError(absl::StrCat(kind_, " page ", page, " is free twice, or free and held"));
    seen[page] = true;
  }
  for (int64_t page = 0; page < capacity(); ++page) {
    if (!seen[page]) return absl::InternalError(absl::StrCat(kind_, " page ", page, " is neither free nor held"));
  }
  return absl::OkStatus();
}

absl::Status RingPools::CheckInvariants() const {
  LS_RETURN_IF_ERROR(window.CheckInvariants());
  LS_RETURN_IF_ERROR(segment.CheckInvariants());
  return open_chunk.CheckInvariants();
}

}  // namespace longshort
