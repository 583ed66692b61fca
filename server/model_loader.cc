#include "server/model_loader.h"

#include <string>

#include "base/status_macros.h"
#include "models/loading/load_model.h"
#include "server/assembly/warm_up.h"
#include "server/options/served_image_limits.h"

namespace longshort {

GuardedLoader MakeModelLoader(const ServerOptions& options) {
  const LoadOptions load{.precision = options.precision,
                         .threads = static_cast<int>(options.threads),
                         .image_limits = ServedImageLimits(options)};
  const WorkerDevice device{.threads = load.threads};
  return [load, device](const std::string& directory, const LoadGuard& guard) -> absl::StatusOr<LoadedModel> {
    LS_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(directory, load, guard));
    LS_RETURN_IF_ERROR(WarmUp(loaded, device));
    return loaded;
  };
}

}  // namespace longshort
