// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` tells how.

#include <string>
#include <vector>

#include "server/lifecycle/build_gpus.h"
#include "server/lifecycle/describe_command.h"
#include "server/lifecycle/model_loader.h"
#include "server/lifecycle/run.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "describe") {
    return longshort::RunDescribe({arguments.begin() + 1, arguments.end()});
  }
  const longshort::BuildGpus build = longshort::GpusOfThisBuild();
  return longshort::RunServer(
      arguments,
      [&build](const longshort::ServerOptions& options) {
        return longshort::MakeModelLoader(options, build.backends.get());
      },
      build.gpus);
}
