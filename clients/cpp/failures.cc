#include "clients/cpp/failures.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/cpp/json_lines.h"

namespace longshort::client {

namespace {

// Payload that marks a UsageError.
constexpr char kUsageError[] = "longshort/usage-error";

// What the user can do about a document's error, for the end of the message. For classifiers, the server's message
// names `truncate`.
absl::string_view HintFor(absl::string_view message) {
  const bool is_too_long = absl::StartsWith(message, "number of tokens of ") && !absl::StrContains(message, "truncate");
  return is_too_long ? ". Start the server with a larger --max-prompt-tokens, or split the document" : "";
}

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

absl::Status StatusOf(const v1::ItemError& error) {
  return absl::Status(static_cast<absl::StatusCode>(error.code()), error.message());
}

ItemFailures::ItemFailures(Terminal& terminal, bool json, std::string unit)
    : terminal_(terminal), json_(json), unit_(std::move(unit)) {}

void ItemFailures::Add(const std::string& name, const v1::ItemError& error) {
  const absl::Status status = StatusOf(error);
  if (absl::IsNotFound(status)) {
    ++unread_;
  } else {
    const ExitCode code = ExitCodeOf(status);
    ++(code == ExitCode::kInvalid ? invalid_ : code == ExitCode::kUnavailable ? unavailable_ : other_);
  }
  absl::string_view message = error.message();
  absl::ConsumePrefix(&message, absl::StrCat(name, ": "));  // the output already shows the name
  if (json_) {
    v1::ItemError without_name = error;
    without_name.set_message(std::string(message));
    WriteErrorJsonLine(name, without_name, terminal_.output);
  } else {
    terminal_.error << name << ": " << absl::StatusCodeToString(status.code()) << ": " << message << HintFor(message)
                    << "\n";
  }
}

ExitCode ItemFailures::Summarize(int64_t total) const {
  std::vector<std::string> parts;
  if (invalid_ > 0) parts.push_back(absl::StrCat(invalid_, " invalid or not allowed"));
  if (unavailable_ > 0)
    parts.push_back(absl::StrCat(unavailable_, " not served: server full, stopping or unreachable"));
  if (other_ > 0) parts.push_back(absl::StrCat(other_, " failed"));
  if (unread_ > 0) parts.push_back(absl::StrCat(unread_, " unreadable"));
  if (parts.empty()) return ExitCode::kOk;
  terminal_.error << "longshort: of " << total << " " << unit_ << ", " << absl::StrJoin(parts, ", ") << "\n";
  if (invalid_ > 0) return ExitCode::kInvalid;
  if (unavailable_ > 0) return ExitCode::kUnavailable;
  return other_ > 0 ? ExitCode::kOther : ExitCode::kUsage;
}

}  // namespace longshort::client
