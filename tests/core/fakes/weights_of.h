// The weights of a fake model, on the CPU and on GPUs 0 and 1: their replicas follow the fake's settings, also later
// ones.
#pragma once

#include <memory>
#include <utility>

#include "models/worker_device.h"

namespace longshort::core {

// Fake: FakeLanguageModel or FakeClassifier.
template <typename Fake>
typename Fake::Weights WeightsOf(std::shared_ptr<const Fake> fake) {
  typename Fake::Weights weights;
  for (const models::WorkerDevice& device :
       {models::WorkerDevice{}, models::WorkerDevice{.kind = models::DeviceKind::kCuda, .index = 0},
        models::WorkerDevice{.kind = models::DeviceKind::kCuda, .index = 1}}) {
    const auto new_replica = [fake](const models::WorkerDevice& worker) { return fake->Replicate(worker); };
    weights.places.push_back({device, fake->info(), new_replica});
  }
  return weights;
}

template <typename Fake>
typename Fake::Weights WeightsOf(std::unique_ptr<Fake> fake) {
  return WeightsOf(std::shared_ptr<const Fake>(std::move(fake)));
}

// The fake must outlive them.
template <typename Fake>
typename Fake::Weights WeightsOf(const Fake* fake) {
  return WeightsOf(std::shared_ptr<const Fake>(std::shared_ptr<void>(), fake));
}

}  // namespace longshort::core
