// The GPU of a model. The one header of this room that knows LibTorch.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "c10/core/Device.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_loss.h"
#include "models/gpu/graph_buckets.h"

namespace longshort {

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
