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
#include "server/access/rate_limit.h"

namespace longshort {

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

}  // namespace longshort
