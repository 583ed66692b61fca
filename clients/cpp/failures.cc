#include "clients/cpp/failures.h"

#include <algorithm>
#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "clients/cpp/results.h"

namespace longshort::client {

namespace {

// Payload that marks a UsageError.
constexpr char kUsageError[] = "longshort/usage-error";

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (IsUsageError(status)) return ExitCode::kUsage;
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
      return ExitCode::kInvalid;
    case absl::StatusCode::kResourceExhausted:
      // gRPC's error for a message over the server's --max-message-bytes has the same code as a full queue.
      return absl::StrContains(status.message(), "larger than max") ? ExitCode::kInvalid : ExitCode::kUnavailable;
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
  1  an option or command is invalid, or a file cannot be read
  2  the request is invalid or not allowed (INVALID_ARGUMENT, NOT_FOUND, too large, ...); do not send it again unchanged
  3  the server is unreachable, stopping or full (UNAVAILABLE, RESOURCE_EXHAUSTED); retry later
  4  --timeout has passed, or Ctrl-C (DEADLINE_EXCEEDED, CANCELLED)
  5  any other error, such as output that cannot be written to a full disk
score, classify and embed continue after an item that fails, and end with the first of 2, 3, 5 and 1 that an item has.
)";
}

bool MayPass(const absl::Status& status) {
  // gRPC's messages for handshake errors that a retry will not fix, with BoringSSL and with OpenSSL.
  constexpr std::array kLasting = {"CERTIFICATE_VERIFY_FAILED", "certificate verify failed", "WRONG_VERSION_NUMBER",
                                   "wrong version number", "Hostname Verification Check failed"};
  return ExitCodeOf(status) == ExitCode::kUnavailable &&
         std::none_of(kLasting.begin(), kLasting.end(),
                      [&](const char* reason) { return absl::StrContains(status.message(), reason); });
}

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageError, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageError).has_value(); }

v1::ItemError MakeItemError(const absl::Status& status) {
  v1::ItemError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(ValidUtf8(std::string(status.message())));
  return error;
}

}  // namespace longshort::client
