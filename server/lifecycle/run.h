// What `longshort-server` does, from its arguments to its exit code.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/worker_device.h"
#include "server/assembly/load_models.h"
#include "server/options/server_options.h"

namespace longshort {

// Makes the loader of model directories for the given options (precision, threads).
using LoaderFactory = std::function<GuardedLoader(const ServerOptions&)>;
// Looks which GPUs there are; nothing in a build for the CPU only.
using GpuFinder = std::function<std::optional<Gpus>()>;

// Prints help or version, checks the configuration, or serves until SIGTERM or SIGINT. To be called by the main thread
// before there are others. `arguments`: without the program's name. Returns 0, or 1 after telling on standard error
// what is wrong.
int RunServer(
    const std::vector<std::string>& arguments, const LoaderFactory& make_loader,
    const GpuFinder& find_gpus = [] { return std::nullopt; });

}  // namespace longshort
