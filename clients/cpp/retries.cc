#include "clients/cpp/retries.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random_number.h"
#include "clients/cpp/failures.h"

namespace longshort::client {
namespace {

// Payload with the milliseconds of RetryAfter.
constexpr char kRetryAfter[] = "longshort/retry-after-milliseconds";

constexpr int kMaxAttempts = 5;
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
// A connection that is lost after such a silence, and again after one within a fifth of it, is probably closed by a
// proxy because it is idle. Then another attempt would end in the same way.
constexpr absl::Duration kLongSilence = absl::Seconds(5);

// Whether a connection was lost after it had been established.
bool IsLostConnection(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  constexpr absl::string_view kLost[] = {
      "reset",    "RST_STREAM",       "connection to the server was lost", "ocket closed", "Broken pipe",
      "watchdog", "End of TCP stream"};
  return std::any_of(std::begin(kLost), std::end(kLost),
                     [&](absl::string_view why) { return absl::StrContains(status.message(), why); });
}

absl::Status ClosedForSilence(const absl::Status& status, absl::Duration silence) {
  return absl::UnavailableError(absl::StrCat(
      status.message(), "; no message came for ", absl::FormatDuration(absl::Floor(silence, absl::Seconds(1))),
      " before that, as in the attempt before: a proxy or load balancer probably closes idle connections. Raise its "
      "idle timeout, or set the server's --ping-interval and --keepalive-interval below it"));
}

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::string_view milliseconds) {
  status.SetPayload(kRetryAfter, absl::Cord(milliseconds));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryAfter);
  int64_t milliseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &milliseconds) || milliseconds < 0)
    return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

void Attempts::Succeeded() {
  failures_ = 0;
  silence_ = absl::ZeroDuration();
  WasAlive();
}

bool Attempts::IsDone(const absl::Status& status) const {
  return status.ok() || (repeat_ == Repeat::kUntilGone && failures_ > 0 && absl::IsNotFound(status));
}

bool Attempts::MayRepeat(const absl::Status& status) const {
  const std::optional<absl::Duration> retry_after = RetryAfter(status);
  const bool is_forbidden = !retry_after.has_value() && status.GetPayload(kRetryAfter).has_value();
  if (is_forbidden) return false;
  if (absl::IsResourceExhausted(status)) return retry_after.has_value();  // otherwise the message is too large
  if (absl::IsAborted(status)) return true;
  return absl::IsUnavailable(status) && repeat_ != Repeat::kIfRefused && MayPass(status);
}

absl::StatusOr<absl::Duration> Attempts::DelayAfter(const absl::Status& status) {
  if (failures_ + 1 >= kMaxAttempts || !MayRepeat(status)) return status;
  if (IsLostConnection(status)) {
    const absl::Duration before = std::exchange(silence_, absl::Now() - alive_);
    if (std::min(before, silence_) >= kLongSilence &&
        absl::AbsDuration(before - silence_) <= std::max(before, silence_) / 5) {
      return ClosedForSilence(status, silence_);
    }
  }
  const absl::Duration backoff = WithJitter(kFirstWait * (1 << failures_++));
  const std::optional<absl::Duration> retry_after = RetryAfter(status);
  absl::BitGen random;
  const absl::Duration delay = retry_after.has_value() ? *retry_after * absl::Uniform(random, 1.0, 1.1) : backoff;
  if (absl::Now() + delay >= deadline_) return status;
  return delay;
}

}  // namespace longshort::client
