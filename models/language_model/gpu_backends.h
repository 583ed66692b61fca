// Where loading finds GPUs: what a build that runs models on them gives, and a build for the CPU only has none of.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"
#include "models/worker_device.h"

namespace longshort {

// Thread-safe.
class GpuBackends {
 public:
  virtual ~GpuBackends() = default;

  // As MakeBackend (models/language_model/loading/backends.h), for a GPU.
  // Errors: INVALID_ARGUMENT if there is no such GPU; those of its backend.
  virtual absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Make(Decoder& decoder, const WorkerDevice& device,
                                                                     const std::function<void()>& between) const = 0;
};

}  // namespace longshort
