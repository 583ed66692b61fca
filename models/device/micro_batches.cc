#include "models/device/micro_batches.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "ATen/Parallel.h"

namespace longshort::models {
namespace {

// Sharing must be faster by this factor, because sharing threads wait for each other and for other processes on their
// CPUs.
constexpr double kWorthSharing = 0.9;

int64_t WorkOf(absl::Span<const MicroBatch> batch) {
  return std::accumulate(batch.begin(), batch.end(), int64_t{0},
                         [](int64_t sum, const MicroBatch& part) { return sum + part.work; });
}

// Speed-up of several threads that share a micro-batch: 1.7 for two, 2.8 for four. The speed-up is linear only if each
// thread has its own micro-batch.
double SpeedOfSharing(int threads) { return std::pow(threads, 0.75); }

// The time at which the last thread ends if threads take micro-batches of `batch` largest first, in units of work of
// one thread.
int64_t EndInParallel(absl::Span<const MicroBatch> batch, int threads) {
  std::vector<int64_t> ends(threads);
  for (const MicroBatch& part : batch) *std::min_element(ends.begin(), ends.end()) += part.work;
  return *std::max_element(ends.begin(), ends.end());
}

// Uses as many threads as LibTorch uses for the calling thread.
int64_t RunInParallel(absl::Span<const MicroBatch> batch, const MicroBatchRunner::Network& network) {
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> multiply_adds = 0;
  // Inside, LibTorch does not share work between threads. Throws what a thread throws.
  at::parallel_for(0, at::get_num_threads(), /*grain_size=*/1, [&](int64_t, int64_t) {
    try {
      for (size_t mine = next++; mine < batch.size(); mine = next++) multiply_adds += network(batch[mine]);
    } catch (...) {
      next = batch.size();
      throw;
    }
  });
  return multiply_adds;
}

}  // namespace

std::vector<MicroBatch> CutBatch(absl::Span<const int64_t> item_work, const MicroBatchWork& work, int threads) {
  const int64_t all = std::accumulate(item_work.begin(), item_work.end(), int64_t{0});
  const int64_t min_parts = (all + work.max - 1) / work.max;
  const int64_t parts = std::max({int64_t{1}, min_parts, std::min<int64_t>(threads, all / work.min)});
  const double part_work = static_cast<double>(all) / static_cast<double>(parts);
  std::vector<MicroBatch> batch;
  int64_t before = 0, last_part = -1;
  for (size_t i = 0; i < item_work.size(); ++i) {
    // An item belongs to the part that contains its midpoint.
    const double middle = static_cast<double>(before) + static_cast<double>(item_work[i]) / 2;
    const auto part = static_cast<int64_t>(middle / part_work);
    if (part != last_part) batch.push_back({.first_item = static_cast<int64_t>(i)});
    ++batch.back().items;
    batch.back().work += item_work[i];
    last_part = part;
    before += item_work[i];
  }
  return batch;
}

MicroBatchPlan PlanMicroBatches(std::vector<MicroBatch> batch, int threads) {
  if (threads == 1) return {.shared = {}, .parallel = std::move(batch)};
  std::stable_sort(batch.begin(), batch.end(),
                   [](const MicroBatch& one, const MicroBatch& other) { return one.work > other.work; });
  const absl::Span<const MicroBatch> all = batch;
  const size_t max_shared = std::min<size_t>(batch.size(), threads);
  size_t shared = 0;
  double soonest = static_cast<double>(EndInParallel(all, threads));
  for (size_t count = 1; count <= max_shared; ++count) {
    const double end = static_cast<double>(WorkOf(all.first(count))) / SpeedOfSharing(threads) +
                       static_cast<double>(EndInParallel(all.subspan(count), threads));
    if (end < kWorthSharing * soonest) std::tie(shared, soonest) = std::pair(count, end);
  }
  const auto first_beside = batch.begin() + static_cast<std::ptrdiff_t>(shared);
  return {.shared = {batch.begin(), first_beside}, .parallel = {first_beside, batch.end()}};
}

int64_t MicroBatchRunner::Run(absl::Span<const int64_t> item_work, const MicroBatchWork& work, const Network& network) {
  const MicroBatchPlan plan = PlanMicroBatches(CutBatch(item_work, work, threads_), threads_);
  int64_t multiply_adds = 0;
  for (const MicroBatch& part : plan.shared) {
    multiply_adds += shared_.Run(part.work, [&] { return network(part); });
  }
  if (!plan.parallel.empty()) {
    multiply_adds += parallel_.Run(WorkOf(plan.parallel), [&] { return RunInParallel(plan.parallel, network); });
  }
  return multiply_adds;
}

}  // namespace longshort::models
