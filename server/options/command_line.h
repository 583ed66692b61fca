// The server's command line: the rows of its options, and what to do.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/option_table.h"
#include "server/options/server_options.h"

namespace longshort::server {

struct CommandLine {
  ServerOptions options;
  // Print something and exit 0, without checking the options.
  HelpForm help = HelpForm::kNone;
  bool version = false;
};

// Parses the arguments after the program's name. ValidateServerOptions checks what depends on files, on the machine or
// on several options.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// What --help prints. REQUIRES: form is not kNone.
std::string HelpText(HelpForm form);

}  // namespace longshort::server
