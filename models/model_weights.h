// A model's weights on each device that it was loaded for. They create a replica for each worker.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/worker_device.h"

namespace longshort::models {

// The weights of a Model that `Info` describes. Copies share them. Thread-safe.
template <typename Model, typename Info>
struct ModelWeights {
  using Replica = absl::StatusOr<std::unique_ptr<Model>>;

  struct Place {
    WorkerDevice device;
    Info info;  // of the replicas on this device
    // Creates a replica for a worker on this device. Thread-safe.
    std::function<Replica(const WorkerDevice& worker)> new_replica;
  };

  // Info of the replicas on this device; of those on the first device if the model is not on this one.
  const Info& info(const WorkerDevice& device) const {
    const auto place = Find(device);
    return place == places.end() ? info() : place->info;
  }
  const Info& info() const { return places.front().info; }

  // Creates a model for one worker. It shares the weights with the other replicas on its device.
  // Errors: RESOURCE_EXHAUSTED if there is no memory, UNIMPLEMENTED for a device without the model, INTERNAL if the
  // library fails.
  Replica NewReplica(WorkerDevice worker) const {
    const auto place = Find(worker);
    if (place == places.end()) {
      const auto append_name = [](std::string* text, const Place& there) {
        absl::StrAppend(text, DeviceName(there.device));
      };
      return absl::UnimplementedError(absl::StrCat("the model is on ", absl::StrJoin(places, ", ", append_name),
                                                   " and cannot run on ", DeviceName(worker)));
    }
    if (worker.threads == 0) worker.threads = place->device.threads;
    return place->new_replica(worker);
  }

  std::vector<Place> places;  // at least one, on distinct devices

 private:
  auto Find(const WorkerDevice& worker) const {
    return std::find_if(places.begin(), places.end(),
                        [&worker](const Place& place) { return place.device.IsOnDeviceOf(worker); });
  }
};

}  // namespace longshort::models
