// Whether a message of a stream is being written, and whether the client reads it.
//
// gRPC reports a write as done once the client has granted window for all of it. So a client that reads nothing appears
// as a write that does not end. Progress within one message is not visible.
//
// Thread: none of its own; the stream's mutex guards it.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace longshort::server {

class WriteTimer {
 public:
  // `timeout`: how long the write of one message may take.
  explicit WriteTimer(absl::Duration timeout) : timeout_(timeout) {}

  void Begin(absl::Time now) { began_ = now; }
  void End() { began_ = absl::InfiniteFuture(); }

  bool writing() const { return began_ != absl::InfiniteFuture(); }
  // Whether a write has been pending for the timeout or longer.
  bool IsStuck(absl::Time now) const { return now >= NextCheck(now); }
  // The earliest time at which a write can be stuck.
  absl::Time NextCheck(absl::Time now) const { return std::min(began_, now) + timeout_; }

 private:
  const absl::Duration timeout_;
  absl::Time began_ = absl::InfiniteFuture();  // infinite if no write is pending
};

}  // namespace longshort::server
