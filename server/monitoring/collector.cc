#include "server/monitoring/collector.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "longshort_version.h"
#include "server/rpc/error_details.pb.h"

namespace longshort {
namespace {

// A collector that comes back is found again within this.
constexpr int kFirstReconnectMs = 500;
constexpr int kLastReconnectMs = 5000;

// What the answer says of when to come back, if it does.
std::optional<absl::Duration> RetryDelay(const grpc::Status& status) {
  rpc::ErrorStatus details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& detail : details.details()) {
    rpc::RetryInfo retry;
    if (!absl::EndsWith(detail.type_url(), "/google.rpc.RetryInfo") || !retry.ParseFromString(detail.value())) continue;
    return absl::Seconds(retry.retry_delay().seconds()) + absl::Nanoseconds(retry.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<grpc::Channel> ConnectToCollector(const TracingOptions& options) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    credentials = grpc::SslCredentials({.pem_root_certs = options.authorities_pem,
                                        .pem_private_key = options.key_pem,
                                        .pem_cert_chain = options.certificate_pem});
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // who exports decides
  arguments.SetUserAgentPrefix(absl::StrCat("longshort-server/", std::string(kVersion)));
  if (options.gzip) arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  return grpc::CreateCustomChannel(options.endpoint, credentials, arguments);
}

std::optional<absl::Duration> RetryAfter(const grpc::Status& status) {
  const std::optional<absl::Duration> delay = RetryDelay(status);
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return delay.value_or(absl::ZeroDuration());
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return delay;  // without it there will never be room
    default:
      return std::nullopt;
  }
}

}  // namespace longshort
