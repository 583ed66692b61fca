// Row-wise parts of a layer: linear maps and layer norms, on tensors with or without gradients, their move to a device,
// and their tensors in safetensors files.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "c10/core/Device.h"
#include "models/ops/products/packed_matrix.h"
#include "models/weights/safetensors.h"
#include "models/worker_device.h"

namespace longshort::models {

class TensorMove;

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;  // [out, in]; undefined if packed
  at::Tensor bias;    // [out], or undefined: none
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  // rows [..., in] -> [..., out], in the rows' type: the weight's type, or float32 with bfloat16 or packed weights. In
  // the second case the bias is float32, too, and is added after the product.
  //   added  of the result's shape and type, added to it; undefined: none
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& added = {}) const;
  // gelu of the result, by erf.
  at::Tensor Gelu(const at::Tensor& rows) const;
  // relu of the result.
  at::Tensor Relu(const at::Tensor& rows) const;

  int64_t outputs() const { return packed != nullptr ? packed->outputs() : weight.size(0); }
  int64_t inputs() const { return packed != nullptr ? packed->inputs() : weight.size(1); }
  // The multiply-adds of one row.
  int64_t multiply_adds() const { return outputs() * inputs(); }
  bool defined() const { return packed != nullptr || weight.defined(); }

  // The same map for serving of products of many rows, in float32: FloatPanels, if the processor has AVX2.
  Linear InPanels() const;
  // The same map for serving: its weight is packed as elements of `type` (Pack), or else float32. It is never plain
  // bfloat16: at::linear would reorder that at every call, or multiply it without vector instructions, far slower than
  // float32.
  Linear Packed(at::ScalarType type) const;
};

// Layer normalisation over the last dimension, with the biased variance. The result has the rows' type.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;

 private:
  // The same of float32 rows on the CPU, without gradients.
  at::Tensor Normalized(const at::Tensor& rows) const;
};

// The maps of fc2(gelu(fc1(rows))): fc1 and fc2. GELU is by erf.
struct FeedForward {
  Linear in, out;

  void MoveBy(TensorMove& move);
};

// The LibTorch device of the tensors of a model on this device. An emulated GPU keeps its memory on the CPU.
inline at::Device TensorDevice(const WorkerDevice& device) {
  if (device.kind != DeviceKind::kCuda) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(device.index)};
}

// Moves the tensors of layers to a device, and converts or packs them. Tensors that layers share stay shared. A tensor
// that is already there is not copied. Calls throw what LibTorch throws.
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

  // For serving on a GPU, where one product of several maps is faster than several.
  static TensorMove ForGpu(at::Device device, at::ScalarType type) {
    TensorMove move(device, type);
    move.joins_maps_ = true;
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
  // For a GPU: returns one map with the outputs of these moved maps in order, whose weights become parts of its weight,
  // and with zeros behind them, so that outputs are a multiple of 8. Otherwise returns a map that is not defined().
  // Maps that share a first weight must share the others.
  Linear Join(std::initializer_list<Linear*> maps);

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
  bool joins_maps_ = false;
  struct MadeMap {
    at::Tensor from;  // keeps the key alive
    Linear to;
  };
  std::map<const void*, MadeMap> packed_, joined_;
};

// What WriteSafetensors writes of a contiguous tensor, which must outlive the result: float16, or else float32.
NamedTensor AsNamed(const std::string& name, const at::Tensor& value);

// Reads the weights of a network while it is built.
class TensorReader final {
 public:
  // The file must outlive the reader.
  explicit TensorReader(const SafetensorsFile& file) : file_(file) {}

  // Returns a float32 copy of a tensor that CheckTensors has accepted. Throws what LibTorch throws, and
  // std::runtime_error if the tensor cannot be read or has values that are not finite; then status() has the reason.
  at::Tensor Read(const std::string& name);

  // Throws, as Read does, if reading of the file's StoredBytes was stopped. For long work after the last tensor.
  void CheckStop();

  // The reason for which Read threw. Errors: those of ReadAsFloat32 and CheckFinite.
  const absl::Status& status() const { return status_; }

  // Call after the last tensor. Errors: that of StoredBytes::CheckUnchanged.
  absl::Status Finish() const { return file_.bytes().CheckUnchanged(); }

 private:
  const SafetensorsFile& file_;
  absl::Status status_;
};

// Returns a stored tensor by its name.
using TensorSource = std::function<at::Tensor(const std::string& name)>;

// Builds parts of layers from the tensors whose names begin with a prefix. The source must outlive this object.
class NamedTensors final {
 public:
  explicit NamedTensors(const TensorSource& source, std::string prefix = "")
      : source_(source), prefix_(std::move(prefix)) {}

  NamedTensors Below(absl::string_view prefix) const { return NamedTensors(source_, absl::StrCat(prefix_, prefix)); }

  at::Tensor operator()(absl::string_view name) const { return source_(absl::StrCat(prefix_, name)); }
  at::Tensor Weight(absl::string_view name) const { return (*this)(absl::StrCat(name, ".weight")); }
  at::Tensor Bias(absl::string_view name) const { return (*this)(absl::StrCat(name, ".bias")); }
  Linear MakeLinear(absl::string_view name) const { return {.weight = Weight(name), .bias = Bias(name)}; }
  LayerNorm MakeNorm(absl::string_view name, double epsilon = LayerNorm().epsilon) const {
    return {.gain = Weight(name), .bias = Bias(name), .epsilon = epsilon};
  }

 private:
  const TensorSource& source_;
  std::string prefix_;
};

}  // namespace longshort::models
