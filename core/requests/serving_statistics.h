// What has become of a model's requests since it was loaded.
//
// Thread-safe: numbers that any thread adds to, without waiting for another. They are read one by one, so of requests
// that end meanwhile some may be told and others not yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace longshort::core {

class ServingStatistics final {
 public:
  // How often, and how long together.
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

  // Where the time of a request that was answered went. A request of several items is told by the slowest.
  struct Request {
    absl::Duration total;
    absl::Duration queue;
    absl::Duration run;
    absl::Duration output;  // from the end of the work until the client was told
    int64_t items = 0;      // images, documents, completions
  };

  // Batches of up to `largest_batch` items are told apart.
  explicit ServingStatistics(int64_t largest_batch = 0) : batches_(largest_batch + 1) {}

  // Its parts are cut so that they are the whole; what is no other part is input.
  void CountAnswer(const Request& request, absl::Time wall_clock);
  void CountFailure(absl::Duration total, absl::Time wall_clock);
  // A model has run once: of a language model a step, of a classifier a batch.
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
  // By size, from 0 on.
  const std::vector<Times>& batches() const { return batches_; }
  // Of the last request's end, in milliseconds since 1970; 0 if there was none.
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

}  // namespace longshort::core
