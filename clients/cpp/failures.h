// Exit codes, and the report of a run in which some items failed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/terminal.h"
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

// The exit code for a call's status.
ExitCode ExitCodeOf(const absl::Status& status);

// The table of exit codes for --help.
absl::string_view ExitCodesHelp();

// Whether the same call may succeed later: the server is unreachable, stopping or full, or the connection broke. False
// for an untrusted certificate and a message that is too large.
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
absl::Status StatusOf(const v1::ItemError& error);

// Reports and counts the failed items of a run over many files or lines, and derives the exit code.
class ItemFailures final {
 public:
  // With `json`, writes failures as objects to the output instead of lines to `terminal.error`. `unit`: such as
  // "images".
  ItemFailures(Terminal& terminal, bool json, std::string unit);

  void Add(const std::string& name, const v1::ItemError& error);

  // Prints how many of `total` failed, if any. Returns kInvalid if an item is invalid or not allowed; otherwise
  // kUnavailable, kOther or kUsage (unreadable), in this order; kOk if none failed.
  ExitCode Summarize(int64_t total) const;

 private:
  Terminal& terminal_;
  const bool json_;
  const std::string unit_;
  int64_t invalid_ = 0;
  int64_t unavailable_ = 0;
  int64_t other_ = 0;
  int64_t unread_ = 0;
};

}  // namespace longshort::client
