// Splits one call into several engine requests and gathers their results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
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
// Thread-safe, except for SubmitParts and SubmitInTurn. Each part holds the object until the part has ended.
template <typename Result>
class ScatterGather final : public std::enable_shared_from_this<ScatterGather<Result>> {
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
      left_ += count + 1;  // the submission itself counts as one
      running_ += count;
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

  using Submit = std::function<absl::Status(const core::PositionInCall&)>;
  // Runs a task on a thread that may submit parts.
  using RunLater = std::function<void(absl::AnyInvocable<void()> task)>;

  // As SubmitParts for the first `window` parts. Each of the others follows alone, when a part has ended. One that is
  // refused waits for the next end, or ends the call if no other part runs. REQUIRES: a shared pointer holds this.
  // Returns whether the first were accepted.
  bool SubmitInTurn(int64_t count, int64_t window, const Submit& submit, RunLater run_later) {
    const int64_t first = std::min(count, window);
    if (first < count) {
      const MutexLock lock(mutex_);
      left_ = count - first;
      for (int64_t i = count - 1; i >= first; --i) waiting_.push_back(i);
      submit_ = submit;
      run_later_ = std::move(run_later);
    }
    return SubmitParts(first, std::cref(submit));
  }

  // An accepted part has ended. `add` (Result& -> void) adds its result, with the lock held.
  template <typename Add>
  void PartEnded(const absl::Status& status, Add add) {
    bool more = false;
    {
      const MutexLock lock(mutex_);
      add(result_);
      --running_;
      more = status.ok() && !waiting_.empty();
    }
    if (more) run_later_([self = this->shared_from_this()] { self->SubmitNext(); });
    Ended(1, status);
  }

 private:
  void SubmitNext() {
    Submit submit;
    core::PositionInCall position;
    {
      const MutexLock lock(mutex_);
      if (waiting_.empty()) return;
      position.index = waiting_.back();
      waiting_.pop_back();
      ++running_;
      ++left_;  // the submission: the call does not end before it has returned
      submit = submit_;
    }
    const absl::Status status = submit(position);
    bool waits = false;
    if (!status.ok()) {
      const MutexLock lock(mutex_);
      --running_;
      waits = absl::IsResourceExhausted(status) && running_ > 0 && status_.ok();
      if (waits) waiting_.push_back(position.index);
    }
    if (status.ok() || waits) {
      Ended(1, absl::OkStatus());
    } else {
      Ended(2, status);
    }
  }

  void Ended(int64_t parts, const absl::Status& status) {
    absl::StatusOr<Result> gathered;
    {
      const MutexLock lock(mutex_);
      if (!status.ok() && status_.ok()) {
        status_ = status;
        cancelled_->store(true);
        left_ -= static_cast<int64_t>(waiting_.size());
        waiting_.clear();
      }
      left_ -= parts;
      if (left_ > 0) return;
      submit_ = nullptr;  // it holds this
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
  int64_t left_ ABSL_GUARDED_BY(mutex_) = 0;              // parts that have not ended
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;           // of them, those that do not wait
  std::vector<int64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // parts to submit; the last one is the next
  Submit submit_ ABSL_GUARDED_BY(mutex_);
  RunLater run_later_;  // set before parts run
};

}  // namespace longshort::server
