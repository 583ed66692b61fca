// The network of a classifier on each of the devices that it is to run on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/worker_device.h"

namespace longshort {

// Where the tensors of a model on this device are. An emulated GPU has its memory on the CPU.
inline at::Device TensorDevice(const WorkerDevice& device) {
  if (device.kind != DeviceKind::kCuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// Immutable: any thread may use it. Copies share the networks.
template <typename Network>
class PlacedNetworks final {
 public:
  // Gives a stored tensor by its name.
  using Source = std::function<at::Tensor(const std::string& name)>;

  struct Place {
    WorkerDevice device;
    std::shared_ptr<const Network> network;
  };

  // Has `make` build the network for each device, of tensors that are there; no devices: for the CPU. Each tensor is
  // read from `read` once. `threads`: of a worker on the CPU whose device does not say how many. Throws what `read`,
  // `make` and LibTorch throw.
  PlacedNetworks(std::vector<WorkerDevice> devices, int threads, const Source& read,
                 const std::function<std::shared_ptr<const Network>(const Source& read)>& make)
      : threads_(threads) {
    if (devices.empty()) devices.push_back({.kind = DeviceKind::kCpu});
    std::map<std::string, at::Tensor> kept;
    for (const WorkerDevice& device : devices) {
      const auto read_to_device = [&](const std::string& name) {
        if (devices.size() == 1) return read(name).to(TensorDevice(device));
        const auto [tensor, is_new] = kept.try_emplace(name);
        if (is_new) tensor->second = read(name);
        return tensor->second.to(TensorDevice(device));
      };
      places_.push_back({device, make(read_to_device)});
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
