// Which failed calls are made again, and after what time. The rule is that of the Python client
// (clients/python/longshort/retries.py), except that a server that no call has reached yet, and that refuses the
// connection, is not waited for (running_call.cc).
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort::client {

// The status with the server's grpc-retry-pushback-ms.
absl::Status WithRetryAfter(absl::Status status, absl::string_view milliseconds);
// The delay before a retry that the server sent with the status, if any.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Which failures of a call are temporary. The server's pushback may forbid each retry.
enum class Repeat {
  // Refusals, which come before the call has had any effect: RESOURCE_EXHAUSTED with a delay, ABORTED.
  kIfRefused,
  // Also UNAVAILABLE, except for certificates that a retry will not mend. The call is idempotent.
  kAlways,
  // As kAlways, for a call that ends something. NOT_FOUND after a failure is success: an earlier attempt, whose answer
  // was lost, has ended it.
  kUntilGone,
};

// The attempts of one call.
class Attempts final {
 public:
  Attempts(Repeat repeat, absl::Time deadline) : repeat_(repeat), deadline_(deadline) {}

  absl::Time deadline() const { return deadline_; }
  // An attempt begins, or received a message, perhaps no answer.
  void WasAlive() { alive_ = absl::Now(); }
  // The call has made progress: a later failure counts as the first one.
  void Succeeded();
  // Whether the call has done its work if this attempt has ended with `status`.
  bool IsDone(const absl::Status& status) const;
  // The delay before the next attempt.
  // Errors: `status` if there is no further attempt, or no time for one; with the likely cause if the connection was
  // lost twice after the same silence.
  absl::StatusOr<absl::Duration> DelayAfter(const absl::Status& status);

 private:
  bool MayRepeat(const absl::Status& status) const;

  const Repeat repeat_;
  const absl::Time deadline_;
  int failures_ = 0;  // consecutive
  absl::Time alive_ = absl::Now();
  absl::Duration silence_;  // before the last loss of the connection
};

}  // namespace longshort::client
