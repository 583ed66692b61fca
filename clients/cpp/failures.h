// Exit codes, and the errors that lead to them.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

enum class ExitCode {
  kOk = 0,
  // An option or command is invalid, or a file cannot be read.
  kUsage = 1,
  // The request is invalid or not allowed: it fails again if it is sent again unchanged.
  kInvalid = 2,
  // The server is unreachable, stopping or full: a later retry may help.
  kUnavailable = 3,
  // --timeout has passed, or Ctrl-C.
  kCancelled = 4,
  // Any other error.
  kOther = 5,
};

// Returns the exit code for a call's status.
ExitCode ExitCodeOf(const absl::Status& status);

// Returns the table of exit codes for --help.
absl::string_view ExitCodesHelp();

// Returns whether the same call may succeed later: the server is unreachable, stopping or full, or the connection
// broke. An untrusted certificate and a message that is too large do not pass.
bool MayPass(const absl::Status& status);

// An error in the command line or in a file that it names. Its exit code is always kUsage.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);

// Turns the error of `value` into a UsageError.
template <typename T>
absl::StatusOr<T> AsUsage(absl::StatusOr<T> value) {
  return value.ok() ? std::move(value) : UsageError(value.status().message());
}

// Converts a local error to the form that the server sends. NOT_FOUND means a file that cannot be read: the server
// never sends it for an item.
v1::ItemError MakeItemError(const absl::Status& status);

}  // namespace longshort::client
