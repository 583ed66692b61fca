// Counts and times of a model's requests since it was loaded.
//
// Thread-safe and lock-free. Each number is read separately, so a request that ends during a read may be included in
// some numbers and not in others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace longshort::core {

class ServingStatistics final {
 public:
  // A count, and a total duration.
  class Times final {
   public:
    void Add(absl::Duration duration) {
      count_.fetch_add(1, std::memory_order_relaxed);
      nanoseconds_.fetch_add(absl::ToInt64Nanoseconds(duration), std::memory_order_relaxed);
    }
    int64_t count() const { return count_.load(std::memory_order_relaxed); }
    int64_t nanoseconds() const { return nanoseconds_.load(std::memory_order_relaxed); }

   private:
    std::atomic<int64_t> count_ = 0;
    std::atomic<int64_t> nanoseconds_ = 0;
  };

  // How long a request that was answered spent in each stage. For a request of several items, those of the slowest one.
  struct Request {
    absl::Duration total;
    absl::Duration queue;
    absl::Duration run;
    absl::Duration output;  // from the end of the work until the client was notified
    int64_t items = 0;      // images, documents, completions
  };

  // Batches of up to `largest_batch` items are counted by size.
  explicit ServingStatistics(int64_t largest_batch = 0) : batches_(largest_batch + 1) {}

  // The parts are clamped so that their sum is the total; the remainder is input.
  void CountAnswer(const Request& request, absl::Time wall_clock);
  void CountFailure(absl::Duration total, absl::Time wall_clock);
  // The model has run once: one step of a language model, or one batch of a classifier.
  void CountStep() { executions_.fetch_add(1, std::memory_order_relaxed); }
  void CountBatch(int64_t items, absl::Duration run) {
    CountStep();
    if (items < static_cast<int64_t>(batches_.size())) batches_[items].Add(run);
  }

  const Times& answers() const { return answers_; }
  const Times& failures() const { return failures_; }
  const Times& queue() const { return queue_; }
  const Times& input() const { return input_; }
  const Times& run() const { return run_; }
  const Times& output() const { return output_; }
  int64_t items() const { return items_.load(std::memory_order_relaxed); }
  int64_t executions() const { return executions_.load(std::memory_order_relaxed); }
  // By batch size, starting at 0.
  const std::vector<Times>& batches() const { return batches_; }
  // When the last request ended, in milliseconds since 1970; 0 if there was none.
  int64_t last_milliseconds() const { return last_milliseconds_.load(std::memory_order_relaxed); }

 private:
  Times answers_;
  Times failures_;
  Times queue_;
  Times input_;
  Times run_;
  Times output_;
  std::atomic<int64_t> items_ = 0;
  std::atomic<int64_t> executions_ = 0;
  std::atomic<int64_t> last_milliseconds_ = 0;
  std::vector<Times> batches_;
};

inline void ServingStatistics::CountAnswer(const Request& request, absl::Time wall_clock) {
  absl::Duration left = request.total;
  const auto take = [&left](absl::Duration part) {
    const absl::Duration taken = std::clamp(part, absl::ZeroDuration(), left);
    left -= taken;
    return taken;
  };
  answers_.Add(request.total);
  output_.Add(take(request.output));
  run_.Add(take(request.run));
  queue_.Add(take(request.queue));
  input_.Add(left);
  items_.fetch_add(request.items, std::memory_order_relaxed);
  last_milliseconds_.store(absl::ToUnixMillis(wall_clock), std::memory_order_relaxed);
}

inline void ServingStatistics::CountFailure(absl::Duration total, absl::Time wall_clock) {
  failures_.Add(total);
  last_milliseconds_.store(absl::ToUnixMillis(wall_clock), std::memory_order_relaxed);
}

}  // namespace longshort::core
