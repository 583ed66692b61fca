// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` tells how.

#include <string>
#include <vector>

#include "models/loading/load_model.h"
#include "server/describe/describe_command.h"
#include "server/lifecycle/run.h"
#include "server/options/served_image_limits.h"

namespace longshort {
namespace {

ModelRegistry::Loader MakeLoader(const ServerOptions& options) {
  const LoadOptions load{.precision = options.precision,
                         .threads = static_cast<int>(options.threads),
                         .image_limits = ServedImageLimits(options)};
  return [load](const std::string& directory) { return LoadModel(directory, load); };
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "describe") {
    return longshort::RunDescribe({arguments.begin() + 1, arguments.end()});
  }
  return longshort::RunServer(arguments, longshort::MakeLoader);
}
