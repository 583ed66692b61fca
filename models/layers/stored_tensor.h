// Stored tensors as LibTorch's.
#pragma once

#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/weights/safetensors.h"

namespace longshort {

// Gives a network that is being made its weights. Where the file cannot be read they are zeros, and Finish says so.
class TensorReader final {
 public:
  // The file must outlive the reader.
  explicit TensorReader(const SafetensorsFile& file) : file_(file) {}

  // A float32 copy of a tensor that CheckTensors has found there. Throws what LibTorch throws.
  at::Tensor Read(const std::string& name);

  // After the last tensor. Errors: the first of ReadAsFloat32, or that of StoredBytes::CheckUnchanged.
  absl::Status Finish() const;

 private:
  const SafetensorsFile& file_;
  absl::Status first_error_;
};

}  // namespace longshort
