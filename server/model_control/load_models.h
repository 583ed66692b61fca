// Loads the repository and gives each model its engine, as the options and its serving.json say.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/model_registry.h"
#include "models/loading/load_model.h"
#include "models/worker_device.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/options/machine_limits.h"
#include "server/options/server_options.h"

namespace longshort::server {

// Loads a model directory for such workers, and asks as it goes on.
using GuardedLoader = std::function<absl::StatusOr<models::LoadedModel>(
    const std::string& directory, const std::vector<models::WorkerDevice>& workers, const models::LoadGuard& guard)>;

// Logs a line for each model. `metrics` must outlive the registry.
// Errors: as ModelRegistry::Load; INVALID_ARGUMENT for a serving.json that is wrong; and RESOURCE_EXHAUSTED if weights
// (told before they are read), --max-streams, or a classifier with what it decodes and what waits for it, does not fit
// in memory.
absl::StatusOr<std::unique_ptr<core::ModelRegistry>> LoadModels(const ServerOptions& options,
                                                                const MachineLimits& machine,
                                                                const GuardedLoader& loader, ServerMetrics& metrics,
                                                                Logger& log);

// The first runs of a model, before anybody waits for one.
//
// Has a replica of the model on `device` do one step of each kind: a language model reads some tokens and goes on by
// one, a classifier runs an item alone and two in a batch. So weights are in memory, and what libraries make at their
// first use is there, when a worker's first request comes. Nothing is left of what was read. No team of threads is kept
// for workers either: each makes its own when it has work, and any rest ends it (models/layers/library.h).
// Errors: those of ModelWeights::NewReplica; INTERNAL if the model fails or throws, as it would at the first request.
absl::Status WarmUp(const models::LoadedModel& loaded, const models::WorkerDevice& device);

}  // namespace longshort::server
