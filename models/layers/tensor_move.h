// Brings the tensors of a network to a device, and perhaps to another type of numbers.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "c10/core/Device.h"
#include "models/layers/linear.h"
#include "models/worker_device.h"

namespace longshort {

// Where the tensors of a model on this device are. An emulated GPU has its memory on the CPU.
inline at::Device TensorDevice(const WorkerDevice& device) {
  if (device.kind != DeviceKind::kCuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// Tensors that layers share stay shared. What is where it should be is not copied. Calls throw what LibTorch throws.
class TensorMove final {
 public:
  // `type`: of numbers; none: each tensor keeps its own.
  explicit TensorMove(at::Device device, std::optional<at::ScalarType> type = std::nullopt)
      : device_(device), type_(type) {}

  // To the device and the type. Undefined tensors stay so.
  template <typename... Parts>
  void operator()(Parts&... parts) {
    (Move(parts, type_), ...);
  }
  // To the device, whatever the type: of what kernels read as float32, and of integers.
  template <typename... Parts>
  void AsTheyAre(Parts&... parts) {
    (Move(parts, std::nullopt), ...);
  }

 private:
  void Move(at::Tensor& tensor, std::optional<at::ScalarType> type);
  // REQUIRES: not packed.
  void Move(Linear& map, std::optional<at::ScalarType> type);
  void Move(LayerNorm& norm, std::optional<at::ScalarType> type);

  struct Moved {
    at::Tensor from;  // keeps the key alive
    at::Tensor to;
  };

  const at::Device device_;
  const std::optional<at::ScalarType> type_;
  std::map<std::pair<const void*, at::ScalarType>, Moved> shared_;
};

}  // namespace longshort
