// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` tells how.

#include <memory>
#include <string>
#include <vector>

#include "server/lifecycle/describe_command.h"
#include "server/lifecycle/model_loader.h"
#include "server/lifecycle/run.h"
#ifdef LONGSHORT_WITH_CUDA
#include "models/loading/cuda_backends.h"
#endif

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "describe") {
    return longshort::RunDescribe({arguments.begin() + 1, arguments.end()});
  }
  longshort::GpusOfBuild gpus;
  std::shared_ptr<const longshort::GpuBackends> backends;
#ifdef LONGSHORT_WITH_CUDA
  gpus.find = [] { return longshort::FindCudaGpus(); };
  backends = longshort::MakeCudaBackends(gpus.loss);
#endif
  const auto make_loader = [&](const longshort::ServerOptions& options) {
    return longshort::MakeModelLoader(options, backends.get());
  };
  return longshort::RunServer(arguments, make_loader, gpus);
}
