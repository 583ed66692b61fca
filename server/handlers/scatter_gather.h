// Splits one call into several engine requests and gathers their results.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "core/requests/request_context.h"

namespace longshort::server {

// Whether an item's error ends the whole call: the caller no longer waits, or the server is stopping. Other errors do
// not affect the other items.
inline bool EndsCall(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

// Submits the parts, gathers their results in a Result, and completes the call once, when all parts have ended. The
// first error becomes the call's status and cancels the other parts.
//
// Thread-safe, except for SubmitParts. Each part holds the object until the part has ended.
template <typename Result>
class ScatterGather final {
 public:
  // Called when all parts have ended, with the first error or OK, before Done. It computes totals over the parts.
  using Complete = std::function<void(const absl::Status&, Result&)>;
  using Done = std::function<void(absl::StatusOr<Result>)>;

  ScatterGather(std::shared_ptr<core::CancellationFlag> cancelled, Result result, Complete complete, Done done)
      : cancelled_(std::move(cancelled)),
        complete_(std::move(complete)),
        done_(std::move(done)),
        result_(std::move(result)) {}

  // Submits parts 0 to `count`-1, of equal size, with `submit` (const PositionInCall& -> absl::Status), until one is
  // refused. Accepted parts end with PartEnded, perhaps before this returns. Returns whether all were accepted. Call it
  // once.
  template <typename Submit>
  bool SubmitParts(int64_t count, Submit submit) {
    {
      const MutexLock lock(mutex_);
      left_ = count + 1;  // the submission itself counts as one
    }
    for (int64_t i = 0; i < count; ++i) {
      const core::PositionInCall position = {.index = i, .count = count, .share = 1.0 / static_cast<double>(count)};
      if (const absl::Status status = submit(position); !status.ok()) {
        Ended(count - i + 1, status);
        return false;
      }
    }
    Ended(1, absl::OkStatus());
    return true;
  }

  // An accepted part has ended. `add` (Result& -> void) adds its result, with the lock held.
  template <typename Add>
  void PartEnded(const absl::Status& status, Add add) {
    {
      const MutexLock lock(mutex_);
      add(result_);
    }
    Ended(1, status);
  }

 private:
  void Ended(int64_t parts, const absl::Status& status) {
    absl::StatusOr<Result> gathered;
    {
      const MutexLock lock(mutex_);
      if (!status.ok() && status_.ok()) {
        status_ = status;
        cancelled_->store(true);
      }
      left_ -= parts;
      if (left_ > 0) return;
      std::exchange(complete_, nullptr)(status_, result_);
      gathered = status_.ok() ? absl::StatusOr<Result>(std::move(result_)) : status_;
    }
    const Done done = std::exchange(done_, nullptr);  // local: it holds the call, whose end may destroy this object
    done(std::move(gathered));
  }

  const std::shared_ptr<core::CancellationFlag> cancelled_;
  Complete complete_;
  Done done_;
  Mutex mutex_;
  Result result_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t left_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace longshort::server
