// Runs a batch of items as micro-batches: groups of adjacent items that go through a network together.
//
// The tensors of a whole batch do not fit the CPU cache, and threads that share products wait for each other at each
// one. So a batch is split into micro-batches that fit, and each thread runs the whole network on one micro-batch at a
// time. If there are fewer micro-batches than threads, all threads share each micro-batch in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "models/device/library.h"

namespace longshort::models {

// Items [first_item, first_item + items) of a batch. `work` is in any unit that is roughly proportional to time.
struct MicroBatch {
  int64_t first_item = 0;
  int64_t items = 0;
  int64_t work = 0;

  friend bool operator==(const MicroBatch&, const MicroBatch&) = default;
};

// Limits of a micro-batch's work.
struct MicroBatchWork {
  int64_t min = 1;  // below it, call overhead exceeds the work: not worth a thread
  int64_t max = 1;  // above it, the tensors do not fit the cache
};

// Splits a batch into micro-batches of about equal work. Makes as few as `work.max` allows, but one per thread if each
// then has at least `work.min`. An item is never split: a larger one is a micro-batch by itself.
//   item_work  [items], each at least 1
std::vector<MicroBatch> CutBatch(absl::Span<const int64_t> item_work, const MicroBatchWork& work, int threads);

struct MicroBatchPlan {
  std::vector<MicroBatch> shared;    // run in turn, each by all threads
  std::vector<MicroBatch> parallel;  // run by one thread each, largest first
};

// Returns the plan with the earliest estimated end. With two threads: one micro-batch is shared; two run in parallel;
// of three, one is shared first.
MicroBatchPlan PlanMicroBatches(std::vector<MicroBatch> batch, int threads);

// Thread: the one that runs the batches.
class MicroBatchRunner final {
 public:
  // Runs one micro-batch and returns the multiply-adds done. Must be thread-safe.
  using Network = std::function<int64_t(const MicroBatch& batch)>;

  // `threads`: maximum for a batch; 0: LibTorch's default.
  explicit MicroBatchRunner(int threads) : threads_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `network` on every micro-batch of a batch and returns the sum of its results. If `network` throws, rethrows
  // the first exception after all threads have stopped; some micro-batches may then not have run.
  int64_t Run(absl::Span<const int64_t> item_work, const MicroBatchWork& work, const Network& network);

 private:
  const int threads_;
  TimedSteps shared_{threads_}, parallel_{threads_};
};

}  // namespace longshort::models
