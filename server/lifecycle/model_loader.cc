#include <string>
#include <vector>

#include "base/status_macros.h"
#include "models/families/load_model.h"
#include "server/lifecycle/run.h"
#include "server/model_control/load_models.h"
#include "server/options/server_options.h"

namespace longshort::server {

GuardedLoader MakeModelLoader(const ServerOptions& options, const models::GpuBackends* gpus) {
  const models::LoadOptions load{
      .precision = options.precision, .threads = static_cast<int>(options.threads), .gpus = gpus};
  return [load, image_limits = ServedImageLimits(options)](
             const std::string& directory, const std::vector<models::WorkerDevice>& workers,
             const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    models::LoadOptions for_workers = load;
    for_workers.devices = models::DistinctDevices(workers);
    LS_ASSIGN_OR_RETURN(models::LoadedModel loaded, models::LoadModel(directory, for_workers, guard, image_limits));
    for (const models::WorkerDevice& device : for_workers.devices) {
      // A worker on a GPU runs a step of each kind when it captures its graphs, before the model is ready.
      if (device.kind == models::DeviceKind::kCpu) LS_RETURN_IF_ERROR(WarmUp(loaded, device));
    }
    return loaded;
  };
}

}  // namespace longshort::server
