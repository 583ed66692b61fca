// longshort-server with models that fail as defined in the environment variable LONGSHORT_FAULTS
// (tests/faults/faulty_models.h). Only for tests; not installed.

#include <iostream>

#include "server/lifecycle/run.h"
#include "tests/faults/loader_with_faults.h"

int main(int argc, char** argv) {
  const auto factory = longshort::WithFaultsOfEnvironment(
      [](const longshort::server::ServerOptions& options) { return longshort::server::MakeModelLoader(options); });
  if (!factory.ok()) {
    std::cerr << factory.status().message() << "\n";
    return 1;
  }
  return longshort::server::RunServer({argv + 1, argv + argc}, *factory);
}
