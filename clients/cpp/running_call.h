// A call of a Client while it runs, and its repeats after a failure. The rule for repeats is the Python client's
// (clients/python/longshort/retries.py), with one exception: a call fails at once if no call has reached the server yet
// and it refuses the connection.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "grpcpp/grpcpp.h"

namespace longshort::client {

// Returns the delay before a retry that the server sent with the status, if any.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Which failures of a call lead to a repeat. The server's pushback may forbid each.
enum class Repeat {
  // Refusals before the call has had any effect: RESOURCE_EXHAUSTED with a delay, ABORTED.
  kIfRefused,
  // Also UNAVAILABLE, except for certificates that a retry will not mend. Only for idempotent calls.
  kAlways,
  // The failures of kAlways, for a call that ends something. NOT_FOUND after a failure is success: an earlier attempt,
  // whose answer was lost, has ended it.
  kUntilGone,
};

// The attempts of one call.
class Attempts final {
 public:
  Attempts(Repeat repeat, absl::Time deadline) : repeat_(repeat), deadline_(deadline) {}

  absl::Time deadline() const { return deadline_; }
  // Called when an attempt begins, and for each message that it receives.
  void WasAlive() { alive_ = absl::Now(); }
  // Called when the call has made progress: a later failure counts as the first one.
  void Succeeded();
  // Returns whether the call has done its work if this attempt has ended with `status`.
  bool IsDone(const absl::Status& status) const;
  // Returns the delay before the next attempt.
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

// The message of the status of a call that Client::Cancel ended.
inline constexpr char kCancelledHere[] = "the client cancelled the call";

// The context of a call, with the metadata of all calls of the client. Client::Cancel ends the call.
class Client::RunningCall final {
 public:
  // `session_id` is the request's session, or empty. Proxies use it to route the calls of a session to one server.
  RunningCall(Client& client, absl::Time deadline, const std::string& session_id = {});
  ~RunningCall() { Leave(); }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

  // Unregisters the call: Cancel then ignores it.
  void Leave();

  // Returns the status of the ended call, and CANCELLED after Cancel even if the call failed first, so that the caller
  // does not handle that failure.
  absl::Status StatusOf(const grpc::Status& status);

 private:
  Client& client_;
  grpc::ClientContext context_;
  bool was_cancelled_ = false;  // before it left
};

}  // namespace longshort::client
