#include "server/lifecycle/model_loader.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "models/loading/load_model.h"
#include "server/model_control/load_models.h"
#include "server/options/server_options.h"

namespace longshort {

GuardedLoader MakeModelLoader(const ServerOptions& options, const GpuBackends* gpus) {
  const LoadOptions load{.precision = options.precision, .threads = static_cast<int>(options.threads), .gpus = gpus};
  return [load, image_limits = ServedImageLimits(options)](const std::string& directory,
                                                           const std::vector<WorkerDevice>& workers,
                                                           const LoadGuard& guard) -> absl::StatusOr<LoadedModel> {
    LoadOptions for_workers = load;
    for_workers.devices = DistinctDevices(workers);
    LS_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(directory, for_workers, guard, image_limits));
    for (const WorkerDevice& device : for_workers.devices) LS_RETURN_IF_ERROR(WarmUp(loaded, device));
    return loaded;
  };
}

}  // namespace longshort
