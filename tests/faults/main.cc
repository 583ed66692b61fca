// longshort-server whose models fail at times, as the environment variable LONGSHORT_FAULTS says
// (tests/faults/faulty_models.h). For tests; never installed.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "server/lifecycle/run.h"
#include "server/model_loader.h"
#include "tests/faults/faulty_models.h"

namespace longshort {
namespace {

LoaderFactory MakeLoaderWith(const FaultPlan& plan) {
  return [plan](const ServerOptions& options) {
    return
        [plan, load = MakeModelLoader(options)](const std::string& directory, const std::vector<WorkerDevice>& workers,
                                                const LoadGuard& guard) -> absl::StatusOr<LoadedModel> {
          absl::StatusOr<LoadedModel> loaded = load(directory, workers, guard);
          if (loaded.ok()) AddFaults(plan, *loaded);
          return loaded;
        };
  };
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const char* const faults = std::getenv("LONGSHORT_FAULTS");
  const auto plan = longshort::ParseFaultPlan(faults == nullptr ? "" : faults);
  if (!plan.ok()) {
    std::cerr << "LONGSHORT_FAULTS: " << plan.status().message() << "\n";
    return 1;
  }
  return longshort::RunServer({argv + 1, argv + argc}, longshort::MakeLoaderWith(*plan));
}
