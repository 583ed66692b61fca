// LibTorch tensors that are read from or written to safetensors files.
#pragma once

#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

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

}  // namespace longshort::models
