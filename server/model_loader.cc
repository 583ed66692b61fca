#include "server/model_loader.h"

#include <string>

#include "models/loading/load_model.h"
#include "server/options/served_image_limits.h"

namespace longshort {

ModelRegistry::Loader MakeModelLoader(const ServerOptions& options) {
  const LoadOptions load{.precision = options.precision,
                         .threads = static_cast<int>(options.threads),
                         .image_limits = ServedImageLimits(options)};
  return [load](const std::string& directory) { return LoadModel(directory, load); };
}

}  // namespace longshort
