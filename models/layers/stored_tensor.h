// Stored tensors as LibTorch's.
#pragma once

#include <string>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

// Gives a network that is being made its weights.
class TensorReader final {
 public:
  // The file must outlive the reader.
  explicit TensorReader(const SafetensorsFile& file) : file_(file) {}

  // A float32 copy of a tensor that CheckTensors has found there. Throws what LibTorch throws, and std::runtime_error
  // where it cannot be read or its values are not finite: then status() says what is wrong.
  at::Tensor Read(const std::string& name);

  // Throws, as Read does, if the file's StoredBytes are to be read no more. For what takes long behind the last tensor.
  void CheckStop();

  // What Read has thrown for. Errors: those of ReadAsFloat32 and CheckFinite.
  const absl::Status& status() const { return status_; }

  // After the last tensor. Errors: that of StoredBytes::CheckUnchanged.
  absl::Status Finish() const { return file_.bytes().CheckUnchanged(); }

 private:
  const SafetensorsFile& file_;
  absl::Status status_;
};

}  // namespace longshort::models
