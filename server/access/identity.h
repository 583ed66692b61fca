// Somebody whom the token file names: what he may take a second, whichever of his tokens he shows.
//
// Tokens are counted as they are worked on: those of a prompt when an engine has taken it, generated ones as they come.
// A call that is begun is not cut off; what it takes too much is paid for before the next one begins.
//
// Thread-safe. Calls of one identity share a lock, for some tens of nanoseconds, and only if it has limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort::server {

// A token bucket: so many units a second, and what was not used in the last second.
//
// It is kept as one time: when all that was taken will be paid for at the rate. The bucket is full when that time is
// past, and empty when it is as far ahead as the bucket is deep; beyond that it is in debt.
//
// Not thread-safe: its owner guards it.
class RateLimit final {
 public:
  // Units a second; 0 is no limit. What was taken before stays taken, and is paid for at a higher rate from now on.
  void SetRate(double per_second, absl::Time now);
  bool limited() const { return unit_ > absl::ZeroDuration(); }

  // How long it takes until a whole unit is there; 0 if one is.
  absl::Duration UntilOneIsThere(absl::Time now) const { return UntilPaid(now, unit_); }
  // The retry delay of a refused caller. Each refusal gets the unit after the one of the refusal before it, so callers
  // that are refused together do not retry together. After 5 s of units the first ones are given out again, because
  // some callers never retry.
  absl::Duration NextTurn(absl::Time now);
  // How long it takes until nothing is owed; 0 if nothing is.
  absl::Duration UntilNothingIsOwed(absl::Time now) const { return UntilPaid(now, absl::ZeroDuration()); }
  // Takes units, whether they are there or not.
  void Take(int64_t units, absl::Time now);

 private:
  absl::Duration UntilPaid(absl::Time now, absl::Duration more) const;

  absl::Duration unit_;   // that one unit takes; 0 without a limit
  absl::Duration depth_;  // of the bucket: what may be saved up
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
  // By which metrics know it: its name, or that of all those together that have no series of their own.
  const std::string& metric_label() const { return label_; }

  // What was taken before stays taken. `now` is MonotonicNow()'s, here and below.
  void SetLimits(const IdentityLimits& limits, absl::Time now);

  // Takes a call. Errors: RESOURCE_EXHAUSTED with a Refusal (core/schedule/refusal.h) that says when there will be room
  // for it; then nothing was taken.
  absl::Status TakeCall(absl::Time now);
  // Whether more tokens may be begun. Errors: as TakeCall.
  absl::Status CheckTokens(absl::Time now);
  void TakeTokens(int64_t tokens, absl::Time now);

 private:
  // With the mutex held.
  absl::Status CheckTokensLocked(absl::Time now) const;

  const std::string name_;
  const std::string label_;
  std::atomic<bool> limited_ = false;
  std::mutex mutex_;  // guards what follows
  IdentityLimits limits_;
  RateLimit calls_;
  RateLimit tokens_;
};

}  // namespace longshort::server
