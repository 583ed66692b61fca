#include <grpc/grpc_security_constants.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "core/schedule/refusal.h"
#include "server/access/access_table.h"
#include "server/call/call_metadata.h"
#include "server/call/error_details.pb.h"
#include "server/transports/grpc/grpc_service.h"

namespace longshort::server {
namespace {

// The first value of the metadata.
std::optional<std::string> Find(const grpc::CallbackServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context) {
  // A time point of std::chrono would overflow: the longest timeout of gRPC is 99,999,999 hours.
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return absl::InfiniteFuture();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return MonotonicNow() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

// All values of the metadata key, separated by commas.
std::optional<std::string> FindAll(const grpc::CallbackServerContext& context, const char* key) {
  const auto [first, last] = context.client_metadata().equal_range(key);
  if (first == last) return std::nullopt;
  std::string value(first->second.data(), first->second.size());
  for (auto next = std::next(first); next != last; ++next) {
    absl::StrAppend(&value, ",", absl::string_view(next->second.data(), next->second.size()));
  }
  return value;
}

bool HasSpiffeUri(const grpc::AuthContext& peer) {
  const std::vector<grpc::string_ref> uris = peer.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  return std::any_of(uris.begin(), uris.end(), [](const grpc::string_ref& uri) {
    return absl::StartsWithIgnoreCase(absl::string_view(uri.data(), uri.size()), "spiffe:");
  });
}

std::string FirstProperty(const grpc::AuthContext& peer, const char* name) {
  const std::vector<grpc::string_ref> values = peer.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

// Reads the properties that the connection's handshake set. The server must not add properties: all calls of the
// connection would see them.
void ReadCertificate(const grpc::CallbackServerContext& context, Credentials* credentials) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer == nullptr) return;
  const std::string security = FirstProperty(*peer, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (security != GRPC_TLS_TRANSPORT_SECURITY_TYPE && security != GRPC_SSL_TRANSPORT_SECURITY_TYPE) return;
  credentials->spiffe_id = FirstProperty(*peer, GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
  // gRPC reports no SPIFFE id that is malformed or accompanied by another URI. A client with such a certificate is not
  // identified by its subject either.
  if (credentials->spiffe_id.empty() && HasSpiffeUri(*peer)) return;
  credentials->certificate_subject = FirstProperty(*peer, GRPC_X509_SUBJECT_PROPERTY_NAME);
}

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// A serialized google.rpc.Status with RetryInfo: the value of `grpc-status-details-bin`.
std::string RefusalDetails(const absl::Status& status, const core::Refusal& refusal) {
  rpc::ErrorStatus details;
  details.set_code(static_cast<int32_t>(status.code()));
  details.set_message(std::string(status.message()));
  google::protobuf::Any& detail = *details.add_details();
  detail.set_type_url(kRetryInfoUrl);
  detail.set_value(SerializeRetryInfo(refusal.retry_after));
  return details.SerializeAsString();
}

// The shortest delay before another attempt of this call. gRPC counts the attempts before, at most four. Where they
// were refused, too, the predicted delays were too short: on a busy machine all attempts would be used up within a
// second.
absl::Duration MinRetryDelay(const grpc::CallbackServerContext& context) {
  constexpr int kMaxAttempts = 4;
  int attempts = 0;
  const std::optional<std::string> before = Find(context, "grpc-previous-rpc-attempts");
  if (!before.has_value() || !absl::SimpleAtoi(*before, &attempts) || attempts < 1) return absl::ZeroDuration();
  return absl::Seconds(1 << (std::min(attempts, kMaxAttempts) - 1));
}

// The retry delay in milliseconds, rounded up: the value of `grpc-retry-pushback-ms`, which gRPC's own retries obey.
std::string RetryPushback(const core::Refusal& refusal) {
  // Clients read the value as an int32. They take anything else, or a negative value, as "never retry".
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(refusal.retry_after, absl::Milliseconds(1)));
  return absl::StrCat(std::clamp<int64_t>(milliseconds, 0, kMax));
}

}  // namespace

CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options) {
  CallOrigin origin = ReadOrigin([&context](const char* key) { return FindAll(context, key); }, DeadlineOf(context));
  origin.peer = context.peer();
  for (const auto& [key, value] : context.client_metadata()) {
    origin.metadata_bytes += static_cast<int64_t>(key.size() + value.size());
  }
  if (options.certificates && !origin.credentials.authorization.has_value())
    ReadCertificate(context, &origin.credentials);
  if (options.authority) {
    const grpc::string_ref authority = context.ExperimentalGetAuthority();
    origin.trace.authority.assign(authority.data(), std::min(authority.size(), kMaxAuthorityBytes));
  }
  return origin;
}

grpc::Status SetTrailingMetadata(const absl::Status& status, const CallRecord& record,
                                 grpc::CallbackServerContext& context) {
  context.AddTrailingMetadata(kIdKey, record.engine_context().id);
  if (LoadReport* load = record.environment().load_report; load != nullptr) {
    context.AddTrailingMetadata("endpoint-load-metrics-bin", load->Get());
  }
  if (record.load_outcome().has_value()) {
    context.AddTrailingMetadata("longshort-load-outcome", OutcomeName(*record.load_outcome()));
  }
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::optional<core::Refusal> refusal = core::GetRefusal(status);
  if (refusal.has_value()) refusal->retry_after = std::max(refusal->retry_after, MinRetryDelay(context));
  if (!refusal.has_value()) return grpc::Status(code, std::string(status.message()));
  context.AddTrailingMetadata("longshort-queue-depth", absl::StrCat(refusal->queue_depth));
  context.AddTrailingMetadata("grpc-retry-pushback-ms", RetryPushback(*refusal));
  return grpc::Status(code, std::string(status.message()), RefusalDetails(status, *refusal));
}

}  // namespace longshort::server
