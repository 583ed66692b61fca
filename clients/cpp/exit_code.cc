#include "clients/cpp/exit_code.h"

#include "absl/strings/match.h"

namespace longshort {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kRefused;
    case absl::StatusCode::kResourceExhausted:
      // What gRPC says of a message over --max-message-bytes of the server; a full queue has the same code.
      return absl::StrContains(status.message(), "larger than max") ? ExitCode::kRefused : ExitCode::kUnavailable;
    case absl::StatusCode::kUnavailable:
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
  2  the server refused the request (INVALID_ARGUMENT, NOT_FOUND, too large, ...): the same will be refused again
  3  nobody answers, or the server is stopping or full (UNAVAILABLE, RESOURCE_EXHAUSTED): later may do
  4  --timeout ran out, or Ctrl-C (DEADLINE_EXCEEDED, CANCELLED)
  5  any other error; also output that cannot be written, as on a full disk
)";
}

}  // namespace longshort
