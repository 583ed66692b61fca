// An identity of the token file and its rate limits, which all its credentials share.
//
// Tokens are counted as they are computed: a prompt's when an engine has accepted it, generated ones as they are
// sampled. A running call is not cut off. If it exceeds the rate, the next call waits until the debt is paid.
//
// Thread-safe. Calls of one identity share a lock, held for some tens of nanoseconds, and only if it has limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace longshort::server {

// A token bucket: the units of one second at the rate, or one unit if the rate is lower.
//
// Its state is one time, `paid_`: when all taken units will be paid at the rate. The bucket is full when `paid_` is
// past, empty when `paid_` is the bucket's depth ahead, and in debt beyond that.
//
// Not thread-safe: its owner locks.
class RateLimit final {
 public:
  // Sets the rate in units a second; 0 is no limit. Taken units stay taken, and are paid at the new rate if it is
  // higher.
  void SetRate(double per_second, absl::Time now);
  bool limited() const { return unit_ > absl::ZeroDuration(); }

  // Time until a whole unit is available; 0 if one is.
  absl::Duration TimeUntilUnit(absl::Time now) const { return TimeUntilAvailable(now, unit_); }
  // The retry delay of a refused caller. Each refusal gets the unit after the one of the refusal before it, so callers
  // that are refused together do not retry together. After 5 s of units the first ones are given out again, because
  // some callers never retry.
  absl::Duration NextTurn(absl::Time now);
  // Time until no debt is left; 0 if there is none.
  absl::Duration TimeUntilPaid(absl::Time now) const { return TimeUntilAvailable(now, absl::ZeroDuration()); }
  // Takes units, even if the bucket has too few.
  void Take(int64_t units, absl::Time now);

 private:
  absl::Duration TimeUntilAvailable(absl::Time now, absl::Duration units_time) const;

  absl::Duration unit_;   // time to pay for one unit; 0 without a limit
  absl::Duration depth_;  // of the bucket, as the time to fill it
  double per_second_ = 0;
  absl::Time paid_ = absl::InfinitePast();
  absl::Time turn_ = absl::InfinitePast();  // of the last refusal
};

// 0 is no limit.
struct IdentityLimits {
  double calls_per_second = 0;
  double tokens_per_second = 0;

  friend bool operator==(const IdentityLimits& a, const IdentityLimits& b) {
    return a.calls_per_second == b.calls_per_second && a.tokens_per_second == b.tokens_per_second;
  }
};

class Identity final {
 public:
  Identity(std::string name, std::string metric_label) : name_(std::move(name)), label_(std::move(metric_label)) {}

  const std::string& name() const { return name_; }
  // The identity's name in metrics, or the shared name of identities without their own series.
  const std::string& metric_label() const { return label_; }

  // Taken units stay taken. `now` is MonotonicNow()'s, here and below.
  void SetLimits(const IdentityLimits& limits, absl::Time now);

  // Takes a call. Errors: RESOURCE_EXHAUSTED with a Refusal (core/schedule/refusal.h) that says when to retry; then
  // nothing was taken.
  absl::Status TakeCall(absl::Time now);
  // Checks that the identity owes no tokens. Errors: as TakeCall.
  absl::Status CheckTokens(absl::Time now);
  void TakeTokens(int64_t tokens, absl::Time now);

 private:
  absl::Status CheckTokensLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const std::string label_;
  std::atomic<bool> limited_ = false;
  Mutex mutex_;
  IdentityLimits limits_ ABSL_GUARDED_BY(mutex_);
  RateLimit calls_ ABSL_GUARDED_BY(mutex_);
  RateLimit tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::server
