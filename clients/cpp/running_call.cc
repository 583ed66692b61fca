#include "clients/cpp/running_call.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clients/cpp/retries.h"

namespace longshort::client {
namespace {

// Whether a status without the server's trailers means a lost connection: a proxy whose server died ends a stream that
// has begun by RST_STREAM, for which gRPC reports INTERNAL, CANCELLED or UNKNOWN.
bool IsOfTransport(const grpc::Status& status, const grpc::ClientContext& context) {
  if (context.GetServerTrailingMetadata().count("x-request-id") > 0) return false;
  if (status.error_code() == grpc::StatusCode::INTERNAL) return true;
  return (status.error_code() == grpc::StatusCode::CANCELLED || status.error_code() == grpc::StatusCode::UNKNOWN) &&
         absl::StrContains(status.error_message(), "RST_STREAM");
}

// The status of a call that has ended.
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
