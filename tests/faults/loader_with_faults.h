// Loads models that fail as defined in the environment variable LONGSHORT_FAULTS, for the servers of tests.
#pragma once

#include "absl/status/statusor.h"
#include "server/lifecycle/run.h"

namespace longshort {

// Returns the factory's loaders, whose models have the faults of LONGSHORT_FAULTS (ParseFaultPlan). Without that
// variable, returns the factory unchanged.
// Errors: INVALID_ARGUMENT naming the invalid part of the variable.
absl::StatusOr<server::LoaderFactory> WithFaultsOfEnvironment(server::LoaderFactory factory);

}  // namespace longshort
