#include "server/options/server_options.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "models/images/image_header.h"
#include "server/access/tls_material.h"
#include "server/access/token_file.h"
#include "server/options/devices.h"
#include "server/options/exposure.h"
#include "server/options/option_ranges.h"
#include "server/sessions/session_seal.h"

namespace longshort {
namespace {

absl::Status CheckRange(const char* name, int64_t value, const IntegerRange& range) {
  if (range.Holds(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " is ", value, "; it must be in [", range.low, ", ", range.high, "]"));
}

absl::Status CheckRange(const char* name, absl::Duration value, const DurationRange& range) {
  if (range.Holds(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", name, " is ", absl::FormatDuration(value), "; it must be in [",
                                                 absl::FormatDuration(range.low), ", ",
                                                 absl::FormatDuration(range.high), "]"));
}

absl::Status CheckRepository(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "--model-repository is missing: the folder that holds <model>/<version>/config.json");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--model-repository is '", path, "', which is not a directory"));
  }
  return absl::OkStatus();
}

absl::Status CheckChoices(const ServerOptions& options, const MachineLimits& machine) {
  if (const absl::Status status = ParseServedDevices(options.devices, machine).status(); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--devices is '", options.devices, "'; ", status.message()));
  }
  if (options.precision != "fp32" && options.precision != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--precision is '", options.precision, "'; it must be fp32 or bf16"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuckets(const std::vector<double>& buckets) {
  if (buckets.empty()) return absl::InvalidArgumentError("--latency-buckets is empty; it needs at least one bound");
  double previous = 0;
  for (const double bound : buckets) {
    if (!(bound > previous) || std::isinf(bound)) {
      return absl::InvalidArgumentError(absl::StrCat("--latency-buckets has ", bound, " after ", previous,
                                                     "; bounds are positive seconds, finite, and rise"));
    }
    previous = bound;
  }
  return absl::OkStatus();
}

// Whether the ports are as secure as where they listen demands.
absl::Status CheckEncryption(const ServerOptions& options) {
  const TlsFiles& tls = options.tls;
  const bool any = !tls.certificate.empty() || !tls.key.empty() || !tls.client_ca.empty() || !tls.client_crl.empty();
  if (any && options.insecure) {
    return absl::InvalidArgumentError(
        "--insecure serves without TLS, and --tls-... options are given: leave out the one or the others");
  }
  if (any) return TlsMaterial::Load(tls, absl::Now()).status();
  if (options.insecure) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckIsLoopback("listen", options.listen));
  return CheckIsLoopback("http-listen", options.http_listen);
}

absl::Status CheckTokenFile(const ServerOptions& options) {
  if (options.token_file.empty()) {
    if (!options.protect_health) return absl::OkStatus();
    return absl::InvalidArgumentError("--protect-health needs --token-file: without it nobody can show who he is");
  }
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTokenFile(options.token_file));
  return ParseTokenFile(text, options.token_file).status();
}

// Pixels of the largest image that each thread may decode at once within `bytes`; all that decoders take if that is 0.
int64_t PixelsWithin(int64_t bytes, int64_t threads) {
  constexpr int64_t kMost = ImageLimits().max_pixels;
  if (bytes == 0) return kMost;
  return std::clamp<int64_t>(bytes / threads / ImageLimits::kDecodingBytesPerPixel, 1, kMost);
}

}  // namespace

std::string ListenAddress::ToString() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return bracketed ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos)) {
    return absl::InvalidArgumentError("must be host:port (an IPv6 host stands in brackets: [::1]:8500)");
  }
  const std::string port_text = text.substr(colon + 1);
  ListenAddress address{.host = std::move(host)};
  if (!absl::SimpleAtoi(port_text, &address.port) || address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("has the port '", port_text, "'; it must be in [0, 65535]"));
  }
  return address;
}

absl::StatusOr<ServerOptions> ValidateServerOptions(ServerOptions options, const MachineLimits& machine) {
  LS_RETURN_IF_ERROR(CheckRepository(options.model_repository));
  LS_RETURN_IF_ERROR(CheckChoices(options, machine));
  LS_RETURN_IF_ERROR(CheckEncryption(options));
  if (options.threads == 0) options.threads = ThreadsPerWorker(machine.cpus, *ParseDevices(options.devices));
  LS_RETURN_IF_ERROR(CheckRange("threads", options.threads, {1, 1024}));
  LS_RETURN_IF_ERROR(CheckRange("max-streams", options.max_streams, kMaxStreams));
  LS_RETURN_IF_ERROR(CheckRange("step-time", options.step_time, kStepTime));
  LS_RETURN_IF_ERROR(CheckRange("cache-bytes", options.cache_bytes, kCacheBytes));
  LS_RETURN_IF_ERROR(CheckRange("max-queued-requests", options.max_queued_requests, kMaxQueuedRequests));
  LS_RETURN_IF_ERROR(CheckRange("max-queue-time", options.max_queue_time, kMaxQueueTime));
  LS_RETURN_IF_ERROR(CheckRange("max-queued-requests-per-client", options.max_queued_requests_per_client,
                                kMaxQueuedRequestsPerClient));
  LS_RETURN_IF_ERROR(
      CheckRange("max-queue-time-per-client", options.max_queue_time_per_client, kMaxQueueTimePerClient));
  LS_RETURN_IF_ERROR(CheckRange("max-running-per-client", options.max_running_per_client, kMaxRunningPerClient));
  LS_RETURN_IF_ERROR(CheckRange("max-batch-size", options.max_batch_size, kMaxBatchSize));
  LS_RETURN_IF_ERROR(CheckRange("preparation-threads", options.preparation_threads, {1, 64}));
  if (options.max_image_pixels == 0) {
    options.max_image_pixels = PixelsWithin(machine.memory_bytes / 4, options.preparation_threads);
  }
  LS_RETURN_IF_ERROR(CheckRange("max-image-pixels", options.max_image_pixels,
                                {1, PixelsWithin(machine.memory_bytes / 2, options.preparation_threads)}));
  LS_RETURN_IF_ERROR(CheckRange("max-message-bytes", options.max_message_bytes, {1 << 10, 1 << 30}));
  LS_RETURN_IF_ERROR(CheckRange("max-prompt-tokens", options.max_prompt_tokens, {1, 1 << 30}));
  LS_RETURN_IF_ERROR(CheckRange("max-generate-tokens", options.max_generate_tokens, {1, 1 << 30}));
  LS_RETURN_IF_ERROR(CheckRange("session-time-to-live", options.session_time_to_live, kSessionTimeToLive));
  if (!options.session_key_file.empty()) LS_RETURN_IF_ERROR(ReadSessionKey(options.session_key_file).status());
  LS_RETURN_IF_ERROR(CheckTokenFile(options));
  LS_RETURN_IF_ERROR(CheckRange("drain-delay", options.drain_delay, {absl::ZeroDuration(), absl::Hours(1)}));
  LS_RETURN_IF_ERROR(CheckRange("drain-timeout", options.drain_timeout, {absl::ZeroDuration(), absl::Hours(1)}));
  LS_RETURN_IF_ERROR(
      CheckRange("keepalive-interval", options.keepalive_interval, {absl::Milliseconds(100), absl::Hours(1)}));
  LS_RETURN_IF_ERROR(
      CheckRange("slow-reader-timeout", options.slow_reader_timeout, {absl::Milliseconds(100), absl::Hours(1)}));
  if (options.max_connection_age != absl::ZeroDuration()) {
    LS_RETURN_IF_ERROR(CheckRange("max-connection-age", options.max_connection_age, kConnectionAge));
  }
  if (options.max_connection_age_grace != absl::ZeroDuration()) {
    if (options.max_connection_age == absl::ZeroDuration()) {
      return absl::InvalidArgumentError("--max-connection-age-grace needs --max-connection-age: no connection ages");
    }
    LS_RETURN_IF_ERROR(CheckRange("max-connection-age-grace", options.max_connection_age_grace, kConnectionAge));
  }
  if (options.watch_repository != absl::ZeroDuration()) {
    LS_RETURN_IF_ERROR(
        CheckRange("watch-repository", options.watch_repository, {absl::Milliseconds(100), absl::Hours(1)}));
  }
  LS_RETURN_IF_ERROR(CheckBuckets(options.latency_buckets));
  if (options.listen.port != 0 && options.listen.port == options.http_listen.port &&
      options.listen.host == options.http_listen.host) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen and --http-listen are both ", options.listen.ToString(), "; they need a port each"));
  }
  return options;
}

}  // namespace longshort
