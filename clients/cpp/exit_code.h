// How the program tells a script what became of it.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace longshort {

enum class ExitCode {
  kOk = 0,
  // An option or command is wrong, or a file cannot be read.
  kUsage = 1,
  // The server refused the request: asking again will not help.
  kRefused = 2,
  // Nobody answers, or the server is stopping or full: asking later may help.
  kUnavailable = 3,
  // --timeout ran out, or Ctrl-C.
  kCancelled = 4,
  // Any other error.
  kOther = 5,
};

// What a call's status means to a script.
ExitCode ExitCodeOf(const absl::Status& status);

// The table of exit codes for --help.
absl::string_view ExitCodesHelp();

}  // namespace longshort
