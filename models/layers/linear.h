// What a layer does to each row by itself: linear maps and layer norms, over tensors that may remember their gradients.
// And how their tensors come to a device.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "c10/core/Device.h"
#include "models/worker_device.h"

namespace longshort::models {

// A matrix of 16-bit numbers, in the order in which the library's products read it: half the bytes of float32, which
// are most of what a product of few rows costs. Shared by a model's replicas. Thread: any.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;

  // rows [..., rows, in] -> [..., rows, out], both float32, summed in float32. Throws what LibTorch throws.
  virtual at::Tensor Multiply(const at::Tensor& rows) const = 0;
};

// Of `weight` [out, in]:
// - bfloat16: for products of bfloat16 numbers (AVX-512 with bfloat16, AMX), rows and result rounded to them; or, on a
//   processor that has none, for float32 rows and the weight in float16, which only rounds numbers below 2^-17;
// - float32: for float32 rows and the weight in float16, if that is the same matrix, as weights stored in float16 are.
// nullptr if neither can be had. Throws what LibTorch throws.
std::shared_ptr<const PackedMatrix> Pack(const at::Tensor& weight);

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;  // [out, in]; undefined if packed
  at::Tensor bias;    // [out], or undefined: none
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  // rows [..., in] -> [..., out], of the rows' type: that of the weight, or float32 with bfloat16 or packed weights.
  // Then the bias is float32, too, and is added after the product.
  at::Tensor operator()(const at::Tensor& rows) const;

  // The same map for serving: its weight as Pack() has it, or else float32. Never bfloat16, which at::linear would
  // bring into another order at every call, or multiply without the processor's help, far slower than float32.
  Linear Packed() const;
};

// Layer normalisation over the last dimension, with the biased variance. The result has the rows' type.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;
};

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

// fc2(gelu(fc1(rows))), GELU by erf.
struct FeedForward {
  Linear in, out;

  at::Tensor operator()(const at::Tensor& rows) const;

  void MoveBy(TensorMove& move) { move(in, out); }
};

}  // namespace longshort::models
