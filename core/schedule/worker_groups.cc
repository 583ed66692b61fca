#include "core/schedule/worker_groups.h"

#include <algorithm>

namespace longshort::core {

WorkerGroups::WorkerGroups(absl::Span<const models::WorkerDevice> workers) {
  std::vector<models::WorkerDevice> devices;
  for (const models::WorkerDevice& worker : workers) {
    const auto device = std::find_if(devices.begin(), devices.end(),
                                     [&](const models::WorkerDevice& known) { return known.IsOnDeviceOf(worker); });
    const auto group = static_cast<size_t>(device - devices.begin());
    if (device == devices.end()) {
      devices.push_back(worker);
      sizes_.push_back(0);
    }
    ++sizes_[group];
    group_of_.push_back(group);
  }
}

absl::Duration WorkerGroups::Shared(absl::Span<const absl::Duration> times) const {
  if (count() == 1) return times[0] / workers();
  double pieces_per_second = 0;
  int64_t known = 0;
  for (size_t group = 0; group < count(); ++group) {
    if (times[group] <= absl::ZeroDuration()) continue;
    pieces_per_second += static_cast<double>(sizes_[group]) / absl::ToDoubleSeconds(times[group]);
    known += sizes_[group];
  }
  if (known == 0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(known) / static_cast<double>(workers()) / pieces_per_second);
}

absl::Duration WorkerGroups::PartOfAll(size_t group, absl::Duration time,
                                       absl::Span<const absl::Duration> times) const {
  if (count() == 1 || times[group] <= absl::ZeroDuration()) return time / workers();
  return time * absl::FDivDuration(Shared(times), times[group]);
}

}  // namespace longshort::core
