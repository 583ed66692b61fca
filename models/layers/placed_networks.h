// The network of a classifier on each of the devices that it is to run on.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/classifier_options.h"
#include "models/gpu_backends.h"
#include "models/layers/tensor_move.h"
#include "models/worker_device.h"

namespace longshort {

// Where the tensors of a model on this device are. An emulated GPU has its memory on the CPU.
inline at::Device TensorDevice(const WorkerDevice& device) {
  if (device.kind != DeviceKind::kCuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// Immutable: any thread may use it. Copies share the networks.
//
// A network is made on the CPU, in float32. Each device has it in the type that it computes in.
template <typename Network>
class PlacedNetworks final {
 public:
  struct Place {
    WorkerDevice device;
    std::shared_ptr<const Network> network;
  };

  // Has `copy` make a copy of the network, moved, for each of the devices; none: for the CPU. Throws what `copy` and
  // LibTorch throw.
  PlacedNetworks(const ClassifierOptions& options,
                 const std::function<std::shared_ptr<const Network>(TensorMove& move)>& copy)
      : threads_(options.threads) {
    std::vector<WorkerDevice> devices = options.devices;
    if (devices.empty()) devices.push_back({.kind = DeviceKind::kCpu});
    for (const WorkerDevice& device : devices) {
      if (options.gpus != nullptr && device.kind != DeviceKind::kCpu) options.gpus->BeginLoading(device);
      TensorMove move(TensorDevice(device), options.ComputesInBFloat16(device) ? at::kBFloat16 : at::kFloat);
      places_.push_back({device, copy(move)});
    }
  }

  // For a worker that has no other: the first.
  Place First() const { return ForWorker(places_.front(), places_.front().device); }
  // Errors: UNIMPLEMENTED for a device that the network is not on.
  absl::StatusOr<Place> On(const WorkerDevice& worker) const {
    for (const Place& place : places_) {
      if (place.device.IsOnDeviceOf(worker)) return ForWorker(place, worker);
    }
    return absl::UnimplementedError(absl::StrCat("the model is on ", DeviceName(places_.front().device),
                                                 " and cannot run on ", DeviceName(worker)));
  }

 private:
  Place ForWorker(const Place& place, WorkerDevice worker) const {
    if (worker.threads == 0) worker.threads = threads_;
    return {worker, place.network};
  }

  int threads_;
  std::vector<Place> places_;
};

}  // namespace longshort
