// Moves the tensors of layers to a device, and converts or packs them.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "c10/core/Device.h"
#include "models/ops/layers/linear.h"
#include "models/worker_device.h"

namespace longshort::models {

// The LibTorch device of the tensors of a model on this device. An emulated GPU keeps its memory on the CPU.
inline at::Device TensorDevice(const WorkerDevice& device) {
  if (device.kind != DeviceKind::kCuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// Moves tensors to a device. Tensors that layers share stay shared. A tensor that is already there is not copied. Calls
// throw what LibTorch throws.
class TensorMove final {
 public:
  // `type`: element type; nullopt: each tensor keeps its own.
  explicit TensorMove(at::Device device, std::optional<at::ScalarType> type = std::nullopt)
      : device_(device), type_(type) {}
  // For serving of products of many rows on the CPU: packs the weights of linear maps, as panels of float32 or as
  // elements of another type (Linear::Packed). All other tensors are float32.
  static TensorMove Packing(at::ScalarType type) {
    TensorMove move(at::kCPU, at::kFloat);
    move.packed_type_ = type;
    return move;
  }

  // Moves to the device and converts to the type. Undefined tensors stay undefined.
  template <typename... Parts>
  void operator()(Parts&... parts) {
    (Move(parts, type_), ...);
  }
  // Moves to the device without a type conversion: for float32 operands of kernels, and for integers.
  template <typename... Parts>
  void AsTheyAre(Parts&... parts) {
    (Move(parts, std::nullopt), ...);
  }

 private:
  void Move(at::Tensor& tensor, std::optional<at::ScalarType> type);
  void Move(Linear& map, std::optional<at::ScalarType> type);
  void Move(LayerNorm& norm, std::optional<at::ScalarType> type);

  struct Moved {
    at::Tensor from;  // keeps the key alive
    at::Tensor to;
  };

  const at::Device device_;
  const std::optional<at::ScalarType> type_;
  std::map<std::pair<const void*, at::ScalarType>, Moved> shared_;
  std::optional<at::ScalarType> packed_type_;
  struct PackedMap {
    at::Tensor from;  // keeps the key alive
    Linear to;
  };
  std::map<const void*, PackedMap> packed_;
};

}  // namespace longshort::models
