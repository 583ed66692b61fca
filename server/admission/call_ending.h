// When a streaming call may be told its status: once it is over, and nobody is at work for it any more. Reads and
// writes must not begin under a call that is being finished.
//
//   if (!ending.Enter()) return;
//   ... work, begin a read, perhaps ending.End(status) ...
//   if (const auto status = ending.Leave()) Finish(*status);
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/status/status.h"

namespace longshort {

class CallEnding final {
 public:
  // Somebody is at work for the call from now on. False, and then nobody is, if it is over.
  [[nodiscard]] bool Enter();
  // No longer. The status that the call ended with, if it is to be finished now: whoever gets it does that, and nobody
  // gets it twice.
  std::optional<absl::Status> Leave();

  // The call is over; the first status counts. Returns as Leave.
  std::optional<absl::Status> End(const absl::Status& status);
  bool ended() const;

 private:
  // With the mutex held.
  std::optional<absl::Status> TakeStatus();

  mutable std::mutex mutex_;  // guards what follows
  int64_t at_work_ = 0;
  std::optional<absl::Status> ended_;
  bool finished_ = false;
};

}  // namespace longshort
