// longshort-server: serves Transformer-LS models over gRPC. `longshort-server --help` has the options.

#include <memory>
#include <string>
#include <vector>

#include "server/lifecycle/run.h"
#ifdef LONGSHORT_WITH_CUDA
#include "models/load_options.h"
#endif

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "describe") {
    return longshort::server::RunDescribe({arguments.begin() + 1, arguments.end()});
  }
  longshort::server::GpusOfBuild gpus;
  std::shared_ptr<const longshort::models::GpuBackends> backends;
#ifdef LONGSHORT_WITH_CUDA
  gpus.find = [] { return longshort::models::FindCudaGpus(); };
  backends = longshort::models::MakeCudaBackends(gpus.loss);
#endif
  const auto make_loader = [&](const longshort::server::ServerOptions& options) {
    return longshort::server::MakeModelLoader(options, backends.get());
  };
  return longshort::server::RunServer(arguments, make_loader, gpus);
}
