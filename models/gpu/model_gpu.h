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

struct ModelGpu {
  // Where LibTorch's tensors on it are.
  c10::Device tensors;
  // A stream of its own for one worker. Errors: those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Told once it is lost.
  std::shared_ptr<GpuLoss> loss;
  // Steps of a language model of so many rows at the most are graphs, which are captured when there are pages. Larger
  // ones take so long that it does not matter what their calls cost.
  int64_t most_graph_rows = 512;
  // Likewise batches of so many images of the size that a classifier was made for.
  int64_t most_graph_images = 32;
};

}  // namespace longshort
