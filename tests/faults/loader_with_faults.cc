#include "tests/faults/loader_with_faults.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/faults/faulty_models.h"

namespace longshort {

absl::StatusOr<server::LoaderFactory> WithFaultsOfEnvironment(server::LoaderFactory factory) {
  const char* const text = std::getenv("LONGSHORT_FAULTS");
  if (text == nullptr) return factory;
  const absl::StatusOr<FaultPlan> plan = ParseFaultPlan(text);
  if (!plan.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("LONGSHORT_FAULTS: ", plan.status().message()));
  }
  return [plan = *plan, factory = std::move(factory)](const server::ServerOptions& options) -> server::GuardedLoader {
    return
        [plan, load = factory(options)](const std::string& directory, const std::vector<models::WorkerDevice>& workers,
                                        const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
          absl::StatusOr<models::LoadedModel> loaded = load(directory, workers, guard);
          if (loaded.ok()) AddFaults(plan, *loaded);
          return loaded;
        };
  };
}

}  // namespace longshort
