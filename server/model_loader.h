// What the server loads models with: LibTorch, behind models' plain headers.
#pragma once

#include "core/registry/model_registry.h"
#include "server/options/server_options.h"

namespace longshort {

// By the options' precision, threads and image limits.
ModelRegistry::Loader MakeModelLoader(const ServerOptions& options);

}  // namespace longshort
