// What the server loads models with: LibTorch, behind models' plain headers.
#pragma once

#include "server/assembly/load_models.h"
#include "server/options/server_options.h"

namespace longshort {

// By the options' precision, threads and image limits.
GuardedLoader MakeModelLoader(const ServerOptions& options);

}  // namespace longshort
