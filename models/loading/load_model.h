// Loads any model of the family: the one place that knows which architectures there are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/loading/load_guard.h"
#include "models/loading/loaded_model.h"
#include "models/worker_device.h"

namespace longshort {

class GpuBackends;

struct LoadOptions {
  // "fp32", or "bf16": weights and cache pages in bfloat16. On the CPU, classifiers compute in float32 in both.
  std::string precision = "fp32";
  // Threads that loading and one step or batch use; 0 takes one for each core.
  int threads = 0;
  // Devices that the model is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // For the GPUs among the devices; null in a build for the CPU only. Must outlive what is loaded.
  const GpuBackends* gpus = nullptr;
  // Of the images that a classifier is asked about.
  ImageLimits image_limits = {};
};

// Loads a model directory by the "architecture" in its config.json. Reads every file once, the weights twice: for the
// fingerprint, then for their values.
// Errors: INVALID_ARGUMENT for an unknown architecture; what `guard` says, before any weights are read; CANCELLED when
// it asks to stop; or as the loader of the architecture says.
absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options,
                                      const LoadGuard& guard = {});

}  // namespace longshort
