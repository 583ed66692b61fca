// The server's command line: every option with its help text, and what a run is asked to do.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/options/server_options.h"

namespace longshort {

struct CommandLine {
  ServerOptions options;
  // Print something and exit 0, without looking at the options.
  bool help = false;
  bool version = false;
};

// Reads the arguments behind the program's name. Ranges are checked later, by ValidateServerOptions.
// Errors: INVALID_ARGUMENT naming the option and the value.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// What --help prints.
std::string HelpText();

}  // namespace longshort
