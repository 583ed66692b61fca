// A run's summaries as a table for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/load/load_options.h"
#include "tools/load/summary.h"

namespace longshort::load {

// `summaries`: one for each of options.workloads.
std::string ReportTable(const LoadOptions& options, const std::vector<Summary>& summaries);
// `arguments`: the command line, for who repeats the run.
std::string ReportJson(const LoadOptions& options, const std::vector<std::string>& arguments,
                       const std::vector<Summary>& summaries);
// Whether it can be written: to be asked before the run. Makes an empty file if there is none. Errors: UNAVAILABLE.
absl::Status TryReport(const std::string& path);
// Errors: UNAVAILABLE if the file cannot be written.
absl::Status WriteReport(const std::string& path, const std::string& json);

}  // namespace longshort::load
