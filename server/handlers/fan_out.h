// The engine requests of one call: counts their ends, keeps the first error, and cancels the others at an error.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "core/requests/request_context.h"

namespace longshort {

class FanOut {
 public:
  // `parts`: how many ends to wait for.
  FanOut(int64_t parts, std::shared_ptr<CancellationFlag> cancelled);

  // `parts` parts have ended. True if they were the last: the call can end, with status().
  bool Finished(const absl::Status& status, int64_t parts = 1);

  // The first error, or OK.
  absl::Status status() const;

 private:
  const std::shared_ptr<CancellationFlag> cancelled_;
  mutable std::mutex mutex_;
  int64_t left_;
  absl::Status status_;
};

struct Submission {
  bool taken = false;  // every part
  bool ended = false;  // everything, already
};

// Submits part 0, 1, ... `count`-1, alike, by `submit` (CallPart -> absl::Status) until one is refused. `fan_out`
// counts one part more than these: the submission itself.
template <typename Submit>
Submission SubmitAll(int64_t count, FanOut& fan_out, Submit submit) {
  for (int64_t i = 0; i < count; ++i) {
    const CallPart part = {.index = i, .count = count, .share = 1.0 / static_cast<double>(count)};
    if (absl::Status status = submit(part); !status.ok()) {
      return {.taken = false, .ended = fan_out.Finished(status, count - i + 1)};
    }
  }
  return {.taken = true, .ended = fan_out.Finished(absl::OkStatus())};
}

}  // namespace longshort
