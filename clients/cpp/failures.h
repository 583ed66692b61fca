// What a failure means to a script and to a person: exit codes, and the failures of a run over many items.
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

// Whether the same call may succeed later: nobody answers, the connection broke, the server stops or is full. Not a
// certificate that is not trusted, nor a message that is too large.
bool MayPass(const absl::Status& status);

// What is wrong with the command line, or with a file that it names: kUsage, whatever the code.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);

// Errors: those of `value`, as UsageError.
template <typename T>
absl::StatusOr<T> AsUsage(absl::StatusOr<T> value) {
  return value.ok() ? std::move(value) : UsageError(value.status().message());
}

// An error of this side as the server would have sent it. NOT_FOUND, which the server never sends of an item, stands
// for a file that cannot be read.
v1::ItemError MakeItemError(const absl::Status& status);
absl::Status StatusOf(const v1::ItemError& error);

// The failures of a run over many files or lines: each is shown beside its name and counted; the counts become an exit
// code.
class ItemFailures final {
 public:
  // With `json`, each failure is an object in the output instead of a line in `terminal.error`. `unit` as in "images".
  ItemFailures(Terminal& terminal, bool json, std::string unit);

  void Add(const std::string& name, const v1::ItemError& error);

  // Tells how many of `total` failed, if any did. Returns kRefused if one was refused; otherwise kUnavailable, kOther
  // or kUsage (it could not be read), in this order; kOk if none failed.
  ExitCode Summarize(int64_t total) const;

 private:
  Terminal& terminal_;
  const bool json_;
  const std::string unit_;
  int64_t refused_ = 0;
  int64_t unavailable_ = 0;
  int64_t other_ = 0;
  int64_t unread_ = 0;
};

}  // namespace longshort::client
