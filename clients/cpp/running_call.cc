#include "clients/cpp/running_call.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/random_number.h"
#include "clients/cpp/failures.h"

namespace longshort::client {
namespace {

// Payload with the milliseconds of RetryAfter.
constexpr char kRetryAfter[] = "longshort/retry-after-milliseconds";

constexpr int kMaxAttempts = 5;
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
// A connection that is lost after such a silence, and again after one within a fifth of it, is probably closed by a
// proxy because it is idle. Then another attempt would end in the same way.
constexpr absl::Duration kLongSilence = absl::Seconds(5);

// Returns whether a connection was lost after it had been established.
bool IsLostConnection(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  constexpr absl::string_view kLost[] = {
      "reset",    "RST_STREAM",       "connection to the server was lost", "ocket closed", "Broken pipe",
      "watchdog", "End of TCP stream"};
  return std::any_of(std::begin(kLost), std::end(kLost),
                     [&](absl::string_view why) { return absl::StrContains(status.message(), why); });
}

absl::Status ClosedForSilence(const absl::Status& status, absl::Duration silence) {
  return absl::UnavailableError(absl::StrCat(
      status.message(), "; no message came for ", absl::FormatDuration(absl::Floor(silence, absl::Seconds(1))),
      " before that, as in the attempt before: a proxy or load balancer probably closes idle connections. Raise its "
      "idle timeout, or set the server's --ping-interval and --keepalive-interval below it"));
}

// Returns the status with the server's grpc-retry-pushback-ms.
absl::Status WithRetryAfter(absl::Status status, absl::string_view milliseconds) {
  status.SetPayload(kRetryAfter, absl::Cord(milliseconds));
  return status;
}

// Returns whether a status means a lost connection, because it comes without the server's trailers. A proxy whose
// server died ends a stream that has begun by RST_STREAM, for which gRPC reports INTERNAL, CANCELLED or UNKNOWN.
bool IsOfTransport(const grpc::Status& status, const grpc::ClientContext& context) {
  if (context.GetServerTrailingMetadata().count("x-request-id") > 0) return false;
  if (status.error_code() == grpc::StatusCode::INTERNAL) return true;
  return (status.error_code() == grpc::StatusCode::CANCELLED || status.error_code() == grpc::StatusCode::UNKNOWN) &&
         absl::StrContains(status.error_message(), "RST_STREAM");
}

// Returns the status of a call that has ended.
absl::Status ToAbslStatus(const grpc::Status& status, const grpc::ClientContext& context) {
  if (IsOfTransport(status, context)) {
    return absl::UnavailableError(absl::StrCat("the connection to the server was lost: ", status.error_message()));
  }
  // Both enums use the canonical codes.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  // gRPC's message if this program cancelled the call.
  if (code == absl::StatusCode::kCancelled && status.error_message() == "CANCELLED") {
    return absl::CancelledError(kCancelledHere);
  }
  absl::Status result(code, status.error_message());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  if (pushback == trailers.end()) return result;
  return WithRetryAfter(result, absl::string_view(pushback->second.data(), pushback->second.size()));
}

// A pushback that forbids a retry is any text that is no number.
constexpr absl::string_view kNever = "never";

// gRPC aborts on invalid metadata. Without it, the server's error explains what is wrong with the id.
bool CanBeMetadata(const std::string& value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryAfter);
  int64_t milliseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &milliseconds) || milliseconds < 0)
    return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

void Attempts::Succeeded() {
  failures_ = 0;
  silence_ = absl::ZeroDuration();
  WasAlive();
}

bool Attempts::IsDone(const absl::Status& status) const {
  return status.ok() || (repeat_ == Repeat::kUntilGone && failures_ > 0 && absl::IsNotFound(status));
}

bool Attempts::MayRepeat(const absl::Status& status) const {
  const std::optional<absl::Duration> retry_after = RetryAfter(status);
  const bool is_forbidden = !retry_after.has_value() && status.GetPayload(kRetryAfter).has_value();
  if (is_forbidden) return false;
  if (absl::IsResourceExhausted(status)) return retry_after.has_value();  // otherwise the message is too large
  if (absl::IsAborted(status)) return true;
  return absl::IsUnavailable(status) && repeat_ != Repeat::kIfRefused && MayPass(status);
}

absl::StatusOr<absl::Duration> Attempts::DelayAfter(const absl::Status& status) {
  if (failures_ + 1 >= kMaxAttempts || !MayRepeat(status)) return status;
  if (IsLostConnection(status)) {
    const absl::Duration before = std::exchange(silence_, absl::Now() - alive_);
    if (std::min(before, silence_) >= kLongSilence &&
        absl::AbsDuration(before - silence_) <= std::max(before, silence_) / 5) {
      return ClosedForSilence(status, silence_);
    }
  }
  const absl::Duration backoff = WithJitter(kFirstWait * (1 << failures_++));
  const std::optional<absl::Duration> retry_after = RetryAfter(status);
  absl::BitGen random;
  const absl::Duration delay = retry_after.has_value() ? *retry_after * absl::Uniform(random, 1.0, 1.1) : backoff;
  if (absl::Now() + delay >= deadline_) return status;
  return delay;
}

Client::RunningCall::RunningCall(Client& client, absl::Time deadline, const std::string& session_id) : client_(client) {
  if (deadline != absl::InfiniteFuture()) context_.set_deadline(absl::ToChronoTime(deadline));
  if (!client_.client_id_.empty()) context_.AddMetadata("x-client-id", client_.client_id_);
  if (CanBeMetadata(session_id)) context_.AddMetadata("x-session-id", session_id);
  client_.credentials_.Authorize(context_);
  const MutexLock lock(client_.mutex_);
  client_.running_.insert(&context_);
  if (client_.cancelled_.HasBeenNotified()) context_.TryCancel();
}

void Client::RunningCall::Leave() {
  const MutexLock lock(client_.mutex_);
  if (client_.running_.erase(&context_) > 0) was_cancelled_ = client_.cancelled_.HasBeenNotified();
}

absl::Status Client::RunningCall::StatusOf(const grpc::Status& status) {
  Leave();
  if (!status.ok() && was_cancelled_) return absl::CancelledError(kCancelledHere);
  absl::Status result = ToAbslStatus(status, context_);
  if (!absl::IsUnavailable(result)) client_.reached_ = true;
  const bool is_wrong_address = !client_.reached_ && absl::StrContains(result.message(), "Connection refused");
  return is_wrong_address ? WithRetryAfter(result, kNever) : result;
}

bool CancelledHere(const absl::Status& status) {
  return absl::IsCancelled(status) && absl::StartsWith(status.message(), kCancelledHere);
}

}  // namespace longshort::client
