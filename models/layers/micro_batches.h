// A batch of items, run as micro-batches: neighbours in the batch that go through a network together.
//
// The tensors of a whole batch fit no cache, and threads that share every product wait for each other at every one. So
// a batch is cut to micro-batches that fit, and each thread runs the whole network on the next one, by itself. Where
// there are fewer of them than threads, all threads share one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "models/layers/timed_steps.h"

namespace longshort::models {

// Items [first_item, first_item + items) of a batch. Work is in any unit in which time is roughly linear.
struct MicroBatch {
  int64_t first_item = 0;
  int64_t items = 0;
  int64_t work = 0;

  friend bool operator==(const MicroBatch&, const MicroBatch&) = default;
};

// How much work a micro-batch should be.
struct MicroBatchWork {
  int64_t least = 1;  // below it the library's calls take longer than what they do: no thread is worth that
  int64_t most = 1;   // above it the tensors leave the cache
};

// Cuts a batch to micro-batches of about equal work: as few as `work.most` allows, but one for each thread where that
// leaves each `work.least`. An item is never cut, so one that is larger than that is a micro-batch by itself.
//   item_work  [items], each at least 1
std::vector<MicroBatch> CutBatch(absl::Span<const int64_t> item_work, const MicroBatchWork& work, int threads);

struct MicroBatchPlan {
  std::vector<MicroBatch> shared;        // one after the other, all threads on each
  std::vector<MicroBatch> side_by_side;  // one thread on each; the largest first, as threads should take them
};

// What ends soonest, as far as it is known beforehand: one micro-batch is shared; two on two threads run side by side;
// of three, one is shared first.
MicroBatchPlan PlanMicroBatches(std::vector<MicroBatch> batch, int threads);

// Thread: the one that runs the batches.
class MicroBatchRunner final {
 public:
  // Runs one micro-batch and returns the multiply-adds done. May be called by any thread, by several at once.
  using Network = std::function<int64_t(const MicroBatch& batch)>;

  // `threads`: of a batch at the most; 0: as many as LibTorch would use.
  explicit MicroBatchRunner(int threads) : threads_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `network` on every micro-batch of a batch and returns the sum of what it returns. Throws what `network` throws
  // first, when no thread runs it any more; some micro-batches may not have been run then.
  int64_t Run(absl::Span<const int64_t> item_work, const MicroBatchWork& work, const Network& network);

 private:
  const int threads_;
  TimedSteps shared_{threads_}, side_by_side_{threads_};
};

}  // namespace longshort::models
