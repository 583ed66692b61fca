#include "server/access/rate_limit.h"

#include <algorithm>

namespace longshort {
namespace {

constexpr absl::Duration kFurthestTurn = absl::Seconds(5);  // behind the first

}  // namespace

void RateLimit::SetRate(double per_second, absl::Time now) {
  if (limited() && per_second > per_second_ && paid_ > now) paid_ = now + (paid_ - now) * (per_second_ / per_second);
  per_second_ = per_second;
  unit_ = per_second > 0 ? absl::Seconds(1 / per_second) : absl::ZeroDuration();
  // At least a unit: a rate below one a second would otherwise never let one through.
  depth_ = std::max(absl::Seconds(1), unit_);
}

absl::Duration RateLimit::NextTurn(absl::Time now) {
  const absl::Time first = now + UntilOneIsThere(now);
  turn_ = std::max(turn_ + unit_, first);
  if (turn_ > first + kFurthestTurn) turn_ = first;
  return turn_ - now;
}

void RateLimit::Take(int64_t units, absl::Time now) {
  if (limited()) paid_ = std::max(paid_, now) + absl::Seconds(static_cast<double>(units) / per_second_);
}

absl::Duration RateLimit::UntilPaid(absl::Time now, absl::Duration more) const {
  if (!limited()) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), std::max(paid_, now) + more - depth_ - now);
}

}  // namespace longshort
