// Which of an engine's workers are equally fast: those of one device, which share what is learned of it.
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

// Work is counted in the time of all workers together: as if they shared each piece, each as fast as it is. What one of
// n equal workers does in t takes t / n of it; if they differ, one over the sum of their speeds.
//
// Thread: any; it never changes.
class WorkerGroups final {
 public:
  // REQUIRES: at least one worker.
  explicit WorkerGroups(absl::Span<const models::WorkerDevice> workers);

  int64_t workers() const { return static_cast<int64_t>(group_of_.size()); }
  size_t count() const { return sizes_.size(); }
  size_t Of(int worker) const { return group_of_[worker]; }

  // What all workers together take for a piece of work that takes one worker of group g `times[g]`. Zero stands for a
  // time that is not known yet: such a worker counts like the mean of the others. Zero if none is known.
  absl::Duration Shared(absl::Span<const absl::Duration> times) const;
  // What of all workers' time so much `time` of one worker of `group` is, on a piece of work of these `times`.
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

  // What one worker has learned and learns.
  Estimator& Of(int worker) { return estimators_[groups_.Of(worker)]; }

 protected:
  ~EstimatorPerDevice() = default;

  const WorkerGroups& groups() const { return groups_; }
  const std::vector<Estimator>& estimators() const { return estimators_; }

  // What `time_of` says of each group.
  template <typename TimeOf>
  std::vector<absl::Duration> Times(const TimeOf& time_of) const {
    std::vector<absl::Duration> times;
    times.reserve(estimators_.size());
    for (const Estimator& estimator : estimators_) times.push_back(time_of(estimator));
    return times;
  }
  // The least that `time_of` says of any; nullopt while there is one of which it says nothing.
  template <typename TimeOf>
  std::optional<absl::Duration> Min(const TimeOf& time_of) const {
    absl::Duration least = absl::InfiniteDuration();
    for (const Estimator& estimator : estimators_) {
      const std::optional<absl::Duration> time = time_of(estimator);
      if (!time.has_value()) return std::nullopt;
      least = std::min(least, *time);
    }
    return least;
  }

 private:
  WorkerGroups groups_;
  std::vector<Estimator> estimators_;  // [groups]
};

}  // namespace longshort::core
