#include "server/monitoring/trace_exporter.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random_number.h"
#include "longshort_version.h"
#include "server/rpc/error_details.pb.h"

namespace longshort::server {
namespace {

// Limits of the time between attempts to connect to a collector.
constexpr int kFirstReconnectMs = 500;
constexpr int kLastReconnectMs = 5000;

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

constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// The thread's priority: it gets idle CPU time, and about a hundredth of a busy CPU.
constexpr int kMinPriority = 19;

constexpr char kExportMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

void ReadMessage(grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (!message->ParseFromZeroCopyStream(&reader)) message->Clear();
}

int64_t CountSpans(const std::vector<std::unique_ptr<CallTrace>>& batch) {
  int64_t spans = 0;
  for (const std::unique_ptr<CallTrace>& call : batch) spans += call->spans();
  return spans;
}

// Adds a jitter of a fifth, so that servers that failed together do not retry together.
absl::Duration Scattered(absl::Duration pause) {
  constexpr uint64_t kSteps = 401;
  return pause * (0.8 + 0.001 * static_cast<double>(RandomNumber() % kSteps));
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
  // Also the time that a connection may take, TLS included.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(options.timeout)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the exporter retries
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
      return delay;  // not retryable without a delay
    default:
      return std::nullopt;
  }
}

TraceExporter::TraceExporter(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics, Logger& log)
    : options_(options),
      queue_(queue),
      metrics_(metrics),
      log_(log),
      resource_(ResourceOf(options)),
      collector_(std::make_unique<grpc::GenericStub>(ConnectToCollector(options))),
      pause_(kFirstPause) {}

TraceExporter::~TraceExporter() {
  Shutdown(absl::ZeroDuration());
  thread_.Join();
}

void TraceExporter::Shutdown(absl::Duration patience) {
  queue_.Close();
  const MutexLock lock(mutex_);
  stop_at_ = std::min(stop_at_, MonotonicNow() + patience);
  changed_.NotifyAll();
  changed_.WaitFor(mutex_, stop_at_ - MonotonicNow(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
  given_up_ = true;
  if (call_ != nullptr) call_->TryCancel();
}

bool TraceExporter::given_up() {
  const MutexLock lock(mutex_);
  return given_up_;
}

void TraceExporter::SleepUntil(absl::Time time) {
  const MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, time - MonotonicNow(),
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); });
}

void TraceExporter::Run() {
  // Calls take precedence over exports, even if the server was started with real-time priority: on busy CPUs spans
  // wait, and may be dropped. Errors do not matter.
  const sched_param ordinary = {};
  pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kMinPriority);
  for (;;) {
    if (not_before_ > MonotonicNow()) SleepUntil(not_before_);
    const Batch batch = queue_.Take();
    if (batch.empty()) break;
    Export(batch);
  }
  const MutexLock lock(mutex_);
  done_ = true;
  changed_.NotifyAll();
}

void TraceExporter::Export(const Batch& batch) {
  const int64_t spans = CountSpans(batch);
  if (given_up()) return metrics_.CountDroppedSpans(SpanLoss::kFailed, spans);
  const absl::Time now = MonotonicNow();
  const grpc::Slice bytes(EncodeSpans(resource_, batch, ToWallClock(now) - now));
  const grpc::ByteBuffer request(&bytes, 1);
  if (!Send(request, spans)) metrics_.CountDroppedSpans(SpanLoss::kFailed, spans);
}

bool TraceExporter::Send(const grpc::ByteBuffer& request, int64_t spans) {
  const absl::Time end = MonotonicNow() + options_.export_timeout;
  for (;;) {
    Response response;
    const grpc::Status status = TryOnce(request, &response);
    if (status.ok()) return NoteSuccess(response, spans), true;
    const std::optional<absl::Duration> retry = RetryAfter(status);
    if (retry.has_value()) {
      not_before_ = MonotonicNow() + std::max(*retry, Scattered(pause_));
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    const bool tries_again = retry.has_value() && not_before_ < end && !given_up();
    NoteFailure(status, tries_again);
    if (!tries_again) return false;
    SleepUntil(not_before_);
  }
}

grpc::Status TraceExporter::TryOnce(const grpc::ByteBuffer& request, Response* response) {
  bool last = false;
  grpc::ClientContext context;
  for (const auto& [key, value] : options_.headers) context.AddMetadata(key, value);
  {
    const MutexLock lock(mutex_);
    last = stop_at_ != absl::InfiniteFuture();
    const absl::Time end = std::min(MonotonicNow() + options_.timeout, stop_at_);
    context.set_deadline(absl::ToChronoTime(ToWallClock(end)));
    call_ = &context;
  }
  grpc::ByteBuffer answer;
  grpc::Status status;
  // The call has its own queue, so that this thread does the call's work.
  grpc::CompletionQueue queue;
  const auto call = collector_->PrepareUnaryCall(&context, kExportMethod, request, &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  // An unreadable answer counts as an empty one: the spans were accepted.
  if (status.ok() && answer.Valid()) ReadMessage(answer, response);
  const MutexLock lock(mutex_);
  call_ = nullptr;
  // An export in flight at the shutdown is tried again.
  if (!status.ok() && last) given_up_ = true;
  return status;
}

void TraceExporter::NoteSuccess(const Response& response, int64_t spans) {
  pause_ = kFirstPause;
  not_before_ = absl::InfinitePast();
  const int64_t rejected = std::clamp<int64_t>(response.partial_success().rejected_spans(), 0, spans);
  metrics_.CountExportedSpans(spans - rejected);
  metrics_.CountDroppedSpans(SpanLoss::kRejected, rejected);
  if (std::exchange(failing_, false)) log_.Info("traces are exported again", {{"collector", options_.endpoint}});
  if (std::exchange(rejected_, rejected > 0) || rejected == 0) return;
  log_.Log(
      LogLevel::kWarning, "the collector rejects spans",
      {{"collector", options_.endpoint}, {"spans", rejected}, {"error", response.partial_success().error_message()}});
}

void TraceExporter::NoteFailure(const grpc::Status& status, bool tries_again) {
  metrics_.CountFailedSpanExport();
  if (std::exchange(failing_, true)) return;
  log_.Log(LogLevel::kWarning, "export of traces failed",
           {{"collector", options_.endpoint},
            {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()))},
            {"error", status.error_message()},
            {"next", tries_again ? "the spans are sent again" : "the spans are dropped"}});
}

}  // namespace longshort::server
