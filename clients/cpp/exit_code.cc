#include "clients/cpp/exit_code.h"

namespace longshort {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kRefused;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return ExitCode::kCancelled;
    default:
      return ExitCode::kOther;
  }
}

absl::string_view ExitCodesHelp() {
  return R"(Exit codes:
  0  done
  1  an option or command is wrong, or a file cannot be read
  2  the server refused the request (INVALID_ARGUMENT, NOT_FOUND, ...): the same request will be refused again
  3  nobody answers, or the server is stopping or full (UNAVAILABLE, RESOURCE_EXHAUSTED): later may do
  4  --timeout ran out, or Ctrl-C (DEADLINE_EXCEEDED, CANCELLED)
  5  any other error
)";
}

}  // namespace longshort
