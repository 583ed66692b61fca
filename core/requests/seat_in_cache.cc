#include "core/requests/seat_in_cache.h"

namespace longshort {

std::optional<ParkedId> SeatInCache::TakeOwn(int worker) {
  if (!is_own_ || !IsWith(worker)) return std::nullopt;
  const ParkedId id = place_->id;
  place_.reset();
  return id;
}

void SeatInCache::Leave() {
  if (is_own_ && place_.has_value() && caches_ != nullptr) caches_->GiveUp(*place_);
  place_.reset();
  is_own_ = false;
}

PrefixSearch& SeatInCache::SearchIn(int worker, uint64_t cache) const {
  const auto index = static_cast<size_t>(worker);
  if (searches_.size() <= index) searches_.resize(index + 1);
  Search& search = searches_[index];
  if (search.cache != cache) search = {.cache = cache, .last = {}};
  return search.last;
}

}  // namespace longshort
