#include "server/monitoring/otlp_client.h"

#include <grpcpp/generic/generic_stub.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/proxy_variable.h"
#include "longshort_version.h"
#include "server/rpc/error_details.pb.h"

namespace longshort::server {
namespace {

// Limits of the time between attempts to connect to a collector.
constexpr int kFirstReconnectMs = 500;
constexpr int kLastReconnectMs = 5000;

constexpr char kExportMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

// The retry delay in the collector's answer, if any.
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

std::shared_ptr<grpc::Channel> ConnectToCollector(const TracingOptions& options, const CollectorPems& pems) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (options.tls) {
    credentials = grpc::SslCredentials(
        {.pem_root_certs = pems.authorities, .pem_private_key = pems.key, .pem_cert_chain = pems.certificate});
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  // Also the time that a connection may take, TLS included.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(options.timeout)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the exporter retries
  // A client with other certificates has connections of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetUserAgentPrefix(absl::StrCat("longshort-server/", std::string(kVersion)));
  if (options.gzip) arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  return grpc::CreateCustomChannel(options.endpoint, credentials, arguments);
}

std::string TextOf(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

class OtlpGrpcClient final : public OtlpClient {
 public:
  OtlpGrpcClient(const TracingOptions& options, const CollectorPems& pems)
      : headers_(options.headers), collector_(ConnectToCollector(options, pems)) {}

  OtlpAnswer Send(const std::string& request, absl::Time end) override {
    grpc::ClientContext context;
    for (const auto& [key, value] : headers_) context.AddMetadata(key, value);
    context.set_deadline(absl::ToChronoTime(ToWallClock(end)));
    {
      const MutexLock lock(mutex_);
      if (is_cancelled_) return {.status = absl::CancelledError("the server stops")};
      call_ = &context;
    }
    const grpc::Slice bytes(request);
    const grpc::ByteBuffer message(&bytes, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    // The call has its own queue, so that this thread does the call's work.
    grpc::CompletionQueue queue;
    const auto call = collector_.PrepareUnaryCall(&context, kExportMethod, message, &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    const MutexLock lock(mutex_);
    call_ = nullptr;
    if (status.ok()) return {.body = answer.Valid() ? TextOf(answer) : ""};
    std::string why = status.error_message();
    const std::string proxy = ExplainProxyVariable();
    if (status.error_code() == grpc::UNAVAILABLE && !proxy.empty()) absl::StrAppend(&why, "; ", proxy);
    return {.status = absl::Status(static_cast<absl::StatusCode>(status.error_code()), why),
            .retry = RetryAfter(status)};
  }

  void Cancel() override {
    const MutexLock lock(mutex_);
    is_cancelled_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }

 private:
  const TextPairs headers_;
  grpc::GenericStub collector_;
  Mutex mutex_;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // in flight
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<OtlpClient>> MakeOtlpClient(const TracingOptions& options, const CollectorPems& pems) {
  if (options.protocol == TracingOptions::Protocol::kHttp) return MakeOtlpHttpClient(options, pems);
  return std::make_shared<OtlpGrpcClient>(options, pems);
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
      return delay;  // not retryable without a delay
    default:
      return std::nullopt;
  }
}

}  // namespace longshort::server
