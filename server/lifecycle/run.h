// Runs `longshort-server`, from its arguments to its exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/gpu_device.h"
#include "models/worker_device.h"
#include "server/model_control/load_models.h"
#include "server/options/server_options.h"

namespace longshort::models {
class GpuBackends;
}

namespace longshort::server {

// Makes the loader of model directories for the given options (precision, threads).
using LoaderFactory = std::function<GuardedLoader(const ServerOptions&)>;
// The GPUs that a build runs models on.
struct GpusOfBuild {
  // Finds the machine's GPUs; nullopt in a build for the CPU only.
  std::function<std::optional<models::Gpus>()> find = [] { return std::nullopt; };
  // The models report a lost GPU here. The server then stops as for SIGTERM, and returns 1.
  std::shared_ptr<models::GpuLoss> loss = std::make_shared<models::GpuLoss>();
};

// Prints help or version, checks the configuration, or serves until SIGTERM, SIGINT or SIGHUP. REQUIRES: called by the
// main thread, before other threads exist. `arguments`: without the program's name. Returns 0, or 1 after printing the
// error on standard error.
int RunServer(const std::vector<std::string>& arguments, const LoaderFactory& make_loader,
              const GpusOfBuild& gpus = {});

// Loads models with LibTorch, which stays behind the plain headers of `models`. Makes a loader with the options'
// precision, threads and image limits. `gpus` must outlive the models; null in a build for the CPU only.
GuardedLoader MakeModelLoader(const ServerOptions& options, const models::GpuBackends* gpus = nullptr);

// `longshort-server describe MODEL_OR_CONFIG`: a model's costs, computed from its config.json.
//
// Returns the text to print. `arguments` are those after "describe": an option, or the name of a model directory, of a
// config.json, or, if no such file exists, of a preset.
// Errors: INVALID_ARGUMENT for other arguments, NOT_FOUND if the model does not exist, those of DescribeConfig.
absl::StatusOr<std::string> DescribeCommand(const std::vector<std::string>& arguments);

// Prints the text to standard output, or an error to standard error. Returns the exit code: 0, or 1 after an error.
int RunDescribe(const std::vector<std::string>& arguments);

}  // namespace longshort::server
