// Whether a message of a stream is on its way to the client, and whether the client takes it.
//
// gRPC tells that a message was written once the client has made room for all of it, so a client that takes nothing is
// seen as a write that does not end. What it takes of a message meanwhile cannot be seen.
//
// Thread: none of its own; the stream's mutex guards it.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace longshort::server {

class WriteTimer {
 public:
  // `timeout`: how long a client may take for one message.
  explicit WriteTimer(absl::Duration timeout) : timeout_(timeout) {}

  void Begin(absl::Time now) { began_ = now; }
  void End() { began_ = absl::InfiniteFuture(); }

  bool writing() const { return began_ != absl::InfiniteFuture(); }
  // Whether a write takes the timeout or longer.
  bool IsStuck(absl::Time now) const { return now >= NextLook(now); }
  // When a write could be stuck at the earliest: not before that need anybody ask again.
  absl::Time NextLook(absl::Time now) const { return std::min(began_, now) + timeout_; }

 private:
  const absl::Duration timeout_;
  absl::Time began_ = absl::InfiniteFuture();  // unless something is on its way
};

}  // namespace longshort::server
