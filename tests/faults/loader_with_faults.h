// Models that fail as the environment variable LONGSHORT_FAULTS says, in the servers of tests.
#pragma once

#include "absl/status/statusor.h"
#include "server/lifecycle/run.h"

namespace longshort {

// The factory's loaders, with the faults of LONGSHORT_FAULTS (ParseFaultPlan) in what they load. Without that variable
// the factory as it is.
// Errors: INVALID_ARGUMENT naming what of the variable is not understood.
absl::StatusOr<server::LoaderFactory> WithFaultsOfEnvironment(server::LoaderFactory factory);

}  // namespace longshort
