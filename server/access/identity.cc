#include "server/access/identity.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"

namespace longshort::server {
namespace {

absl::Status Refuse(const std::string& identity, const char* unit, double per_second, absl::Duration wait) {
  // Whole milliseconds, rounded up, so that a unit is available then.
  wait = absl::Ceil(wait, absl::Milliseconds(1));
  absl::Status status =
      absl::ResourceExhaustedError(absl::StrCat("identity ", identity, " has used its ", per_second, " ", unit,
                                                " a second; try again in ", absl::FormatDuration(wait)));
  core::SetRefusal(status, {.retry_after = wait});
  return status;
}

constexpr absl::Duration kFurthestTurn = absl::Seconds(5);  // after the first

}  // namespace

void RateLimit::SetRate(double per_second, absl::Time now) {
  if (limited() && per_second > per_second_ && paid_ > now) paid_ = now + (paid_ - now) * (per_second_ / per_second);
  per_second_ = per_second;
  unit_ = per_second > 0 ? absl::Seconds(1 / per_second) : absl::ZeroDuration();
  // At least one unit; otherwise a rate below one a second would never admit a call.
  depth_ = std::max(absl::Seconds(1), unit_);
}

absl::Duration RateLimit::NextTurn(absl::Time now) {
  const absl::Time first = now + TimeUntilUnit(now);
  turn_ = std::max(turn_ + unit_, first);
  if (turn_ > first + kFurthestTurn) turn_ = first;
  return turn_ - now;
}

void RateLimit::Take(int64_t units, absl::Time now) {
  if (limited()) paid_ = std::max(paid_, now) + absl::Seconds(static_cast<double>(units) / per_second_);
}

absl::Duration RateLimit::TimeUntilAvailable(absl::Time now, absl::Duration units_time) const {
  if (!limited()) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), std::max(paid_, now) + units_time - depth_ - now);
}

void Identity::SetLimits(const IdentityLimits& limits, absl::Time now) {
  const MutexLock lock(mutex_);
  limits_ = limits;
  calls_.SetRate(limits.calls_per_second, now);
  tokens_.SetRate(limits.tokens_per_second, now);
  limited_ = calls_.limited() || tokens_.limited();
}

absl::Status Identity::TakeCall(absl::Time now) {
  if (!limited_) return absl::OkStatus();
  const MutexLock lock(mutex_);
  const absl::Duration wait = calls_.TimeUntilUnit(now);
  if (tokens_.TimeUntilPaid(now) > wait) return CheckTokensLocked(now);
  if (wait > absl::ZeroDuration()) return Refuse(name_, "calls", limits_.calls_per_second, calls_.NextTurn(now));
  calls_.Take(1, now);
  return absl::OkStatus();
}

absl::Status Identity::CheckTokens(absl::Time now) {
  if (!limited_) return absl::OkStatus();
  const MutexLock lock(mutex_);
  return CheckTokensLocked(now);
}

void Identity::TakeTokens(int64_t tokens, absl::Time now) {
  if (!limited_) return;
  const MutexLock lock(mutex_);
  tokens_.Take(tokens, now);
}

absl::Status Identity::CheckTokensLocked(absl::Time now) const {
  const absl::Duration wait = tokens_.TimeUntilPaid(now);
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return Refuse(name_, "tokens", limits_.tokens_per_second, wait);
}

}  // namespace longshort::server
