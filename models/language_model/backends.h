// Which devices have a backend of the language model.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/gpu_backends.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"
#include "models/worker_device.h"

namespace longshort {

// The backend of a worker on `device`. Prepares the decoder, whose tensors are on the host, for it: matrices that meet
// tokens come into the order in which the device multiplies them.
// `between` is called again and again meanwhile, and may throw.
// `gpus` makes it for a GPU; null: there are none.
// Throws what LibTorch throws. Errors: UNIMPLEMENTED for a kind of device that has none.
absl::StatusOr<std::unique_ptr<LanguageModelBackend>> MakeBackend(
    Decoder& decoder, const WorkerDevice& device, const GpuBackends* gpus = nullptr,
    const std::function<void()>& between = [] {});

}  // namespace longshort
