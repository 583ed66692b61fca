// The command line of longshort-load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/connection_options.h"
#include "tools/load/load_run.h"
#include "tools/load/summary.h"
#include "tools/load/workload.h"

namespace longshort::load {

struct LoadOptions {
  client::ConnectionOptions connection;
  // Title of the report and of plots.
  std::string title;
  // Connections to the server. Calls are spread over them in turn.
  int64_t connections = 1;
  RunOptions run;
  ServiceObjective objective;
  // File that receives the report as JSON; empty: none.
  std::string json_file;
  std::vector<Workload> workloads;
  bool help = false;
};

// Errors: INVALID_ARGUMENT naming the option, its value and the limit.
absl::StatusOr<LoadOptions> ParseLoadOptions(const std::vector<std::string>& arguments);

std::string LoadHelp();

}  // namespace longshort::load
