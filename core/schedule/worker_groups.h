// Groups of equally fast workers: the workers of one device, which share their measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/worker_device.h"

namespace longshort::core {

// Work is measured in the time of all workers together, as if all of them shared each piece. If one of n equal workers
// takes t for a piece, the piece takes t / n of that time. If workers differ, it takes one over the sum of their
// speeds.
//
// Thread: any; it never changes.
class WorkerGroups final {
 public:
  // REQUIRES: at least one worker.
  explicit WorkerGroups(absl::Span<const models::WorkerDevice> workers);

  int64_t workers() const { return static_cast<int64_t>(group_of_.size()); }
  size_t count() const { return sizes_.size(); }
  size_t Of(int worker) const { return group_of_[worker]; }

  // The time that all workers together take for a piece of work that takes one worker of group g `times[g]`. A time of
  // zero is unknown: such a worker counts as the mean of the others. Returns zero if no time is known.
  absl::Duration Shared(absl::Span<const absl::Duration> times) const;
  // Converts `time` of one worker of `group` to the time of all workers, for a piece of work of these `times`.
  absl::Duration PartOfAll(size_t group, absl::Duration time, absl::Span<const absl::Duration> times) const;

 private:
  std::vector<size_t> group_of_;  // [workers]
  std::vector<int64_t> sizes_;    // [groups] workers
};

// An Estimator for each group of equally fast workers.
//
// Not thread-safe: its owner guards it.
template <typename Estimator>
class EstimatorPerDevice {
 public:
  // REQUIRES: at least one worker.
  explicit EstimatorPerDevice(absl::Span<const models::WorkerDevice> workers)
      : groups_(workers), estimators_(groups_.count()) {}

  // The estimator that a worker updates and reads.
  Estimator& Of(int worker) { return estimators_[groups_.Of(worker)]; }

 protected:
  ~EstimatorPerDevice() = default;

  const WorkerGroups& groups() const { return groups_; }
  const std::vector<Estimator>& estimators() const { return estimators_; }

  // The result of `time_of` for each group.
  template <typename TimeOf>
  std::vector<absl::Duration> Times(const TimeOf& time_of) const {
    std::vector<absl::Duration> times;
    times.reserve(estimators_.size());
    for (const Estimator& estimator : estimators_) times.push_back(time_of(estimator));
    return times;
  }
  // The smallest result of `time_of`; nullopt while it returns nullopt for any group.
  template <typename TimeOf>
  std::optional<absl::Duration> Min(const TimeOf& time_of) const {
    absl::Duration min = absl::InfiniteDuration();
    for (const Estimator& estimator : estimators_) {
      const std::optional<absl::Duration> time = time_of(estimator);
      if (!time.has_value()) return std::nullopt;
      min = std::min(min, *time);
    }
    return min;
  }

 private:
  WorkerGroups groups_;
  std::vector<Estimator> estimators_;  // [groups]
};

}  // namespace longshort::core
