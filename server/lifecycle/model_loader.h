// Loads models with LibTorch, which stays behind the plain headers of `models`.
#pragma once

#include "server/model_control/load_models.h"
#include "server/options/server_options.h"

namespace longshort::models {
class GpuBackends;
}

namespace longshort::server {

// Makes a loader with the options' precision, threads and image limits. `gpus` must outlive the models; null in a
// build for the CPU only.
GuardedLoader MakeModelLoader(const ServerOptions& options, const models::GpuBackends* gpus = nullptr);

}  // namespace longshort::server
