// Loads the repository and makes each model's engine, with the options and its serving.json.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"
#include "core/registry/model_registry.h"
#include "models/families/load_model.h"
#include "models/worker_device.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"

namespace longshort::server {

// What the requests and sessions of all models may hold: tokens, tokens, and bytes of items that wait for classifiers.
struct EngineBudgets {
  std::shared_ptr<ClientBudgets> prompts;
  std::shared_ptr<ClientBudgets> sessions;
  std::shared_ptr<ClientBudgets> items;
};
// `parent`: the budget of bytes above; null for none.
EngineBudgets EngineBudgetsOf(const RequestMemory& sizes, const std::shared_ptr<Budget>& parent = nullptr);

// Loads a model directory for these workers, and calls `guard` while it loads.
using GuardedLoader = std::function<absl::StatusOr<models::LoadedModel>(
    const std::string& directory, const std::vector<models::WorkerDevice>& workers, const models::LoadGuard& guard)>;

// Logs a line for each model, and one for each that could not be loaded. `metrics` must outlive the registry. Errors:
// as ModelRegistry::Load. A model fails with INVALID_ARGUMENT for an invalid serving.json, and with RESOURCE_EXHAUSTED
// if weights (checked before they are read), a cache (--cache-bytes), or a classifier with its decoding buffers and its
// queue do not fit in memory.
absl::StatusOr<std::unique_ptr<core::ModelRegistry>> LoadModels(const ServerOptions& options,
                                                                const MachineLimits& machine, EngineBudgets budgets,
                                                                const GuardedLoader& loader, ServerMetrics& metrics,
                                                                Logger& log);

// Runs a new model on the CPU before it gets requests.
//
// A replica on `device` does one step of each kind: a language model reads some tokens and generates one, a classifier
// runs one item alone and two in a batch. This loads weights into memory and initializes libraries before a worker's
// first request. Nothing that was read remains. No thread pool is kept for workers, which make their own
// (models/device/library.h). Errors: those of ModelWeights::NewReplica; INTERNAL if the model fails or throws, as it
// would at the first request.
absl::Status WarmUp(const models::LoadedModel& loaded, const models::WorkerDevice& device);

}  // namespace longshort::server
