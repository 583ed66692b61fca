#include "server/model_loader.h"

#include <string>

#include "models/loading/load_model.h"
#include "server/options/served_image_limits.h"

namespace longshort {

GuardedLoader MakeModelLoader(const ServerOptions& options) {
  const LoadOptions load{.precision = options.precision,
                         .threads = static_cast<int>(options.threads),
                         .image_limits = ServedImageLimits(options)};
  return [load](const std::string& directory, const LoadGuard& guard) { return LoadModel(directory, load, guard); };
}

}  // namespace longshort
