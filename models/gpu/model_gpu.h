// The GPU of a model. The one header of this room that knows LibTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "c10/core/Device.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_loss.h"

namespace longshort {

// What graphs have room for at the most. Larger steps and batches take so long that it does not matter what their calls
// cost.
struct GraphLimits {
  // Steps of a language model of so many rows are graphs, which are captured when there are pages.
  int64_t rows = 512;
  // Batches of so many images of the size that a classifier was made for.
  int64_t images = 32;
  // Batches of so many documents, of so many rows together.
  int64_t documents = 32;
  int64_t document_rows = 4096;
};

struct ModelGpu {
  // Where LibTorch's tensors on it are.
  c10::Device tensors;
  // A stream of its own for one worker. Errors: those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Told once it is lost.
  std::shared_ptr<GpuLoss> loss;
  GraphLimits graphs = {};
};

}  // namespace longshort
