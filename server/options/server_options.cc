#include "server/options/server_options.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "server/access/session_seal.h"
#include "server/access/tls_material.h"
#include "server/access/token_file.h"
#include "server/options/machine.h"

namespace longshort::server {
namespace {

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

absl::Status CheckBuckets(const std::vector<double>& buckets) {
  if (buckets.empty()) return absl::InvalidArgumentError("--latency-buckets is empty; it needs at least one bound");
  double previous = 0;
  for (const double bound : buckets) {
    if (!(bound > previous) || std::isinf(bound)) {
      return absl::InvalidArgumentError(absl::StrCat("--latency-buckets has ", bound, " after ", previous,
                                                     "; bounds must be positive, finite, and in increasing order"));
    }
    previous = bound;
  }
  return absl::OkStatus();
}

// Checks that ports other than loopback have TLS, or --insecure.
absl::Status CheckEncryption(const ServerOptions& options) {
  const TlsFiles& tls = options.tls;
  const bool any = !tls.certificate.empty() || !tls.key.empty() || !tls.client_ca.empty() || !tls.client_crl.empty();
  if (any && options.insecure) {
    return absl::InvalidArgumentError(
        "--insecure serves without TLS, but --tls-... options are given: remove --insecure or the --tls-... options");
  }
  if (any) return TlsMaterial::Load(tls, absl::Now()).status();
  if (options.insecure) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckIsLoopback("listen", options.listen));
  return CheckIsLoopback("http-listen", options.http_listen);
}

// An origin is a scheme, a host and a port, as browsers send it.
absl::Status CheckCorsOrigin(const std::string& origin) {
  if (origin.empty() || origin == "*") return absl::OkStatus();
  const size_t host = origin.find("://");
  const bool web = host != std::string::npos && (origin.substr(0, host) == "http" || origin.substr(0, host) == "https");
  if (web && origin.size() > host + 3 && origin.find_first_of("/?#, ", host + 3) == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--http-cors-origin is \"", origin,
                   "\"; it must be *, or a scheme, a host and, if it is not the usual one, a port, such as "
                   "https://example.com or http://localhost:3000, without a path"));
}

absl::Status CheckTokenFile(const ServerOptions& options) {
  if (options.token_file.empty()) {
    if (!options.protect_health) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--protect-health needs --token-file: without it clients cannot prove their identity");
  }
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTokenFile(options.token_file));
  return ParseTokenFile(text, options.token_file).status();
}

// Pixels of the largest image that each thread may decode at once within `bytes`; if that is 0, the decoders' limit.
int64_t PixelsWithin(int64_t bytes, int64_t threads) {
  constexpr int64_t kMax = models::ImageLimits().max_pixels;
  if (bytes == 0) return kMax;
  return std::clamp<int64_t>(bytes / threads / models::ImageLimits::kDecodingBytesPerPixel, 1, kMax);
}

absl::Status CheckLargestImage(const ServerOptions& options, const MachineLimits& machine) {
  const OptionRange<int64_t> range = {1, PixelsWithin(machine.memory_bytes / 2, options.preparation_threads)};
  if (range.Holds(options.max_image_pixels)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--max-image-pixels is ", options.max_image_pixels, "; it must be ", range.Rule(),
                   ": a larger image would need over half of the memory on all --preparation-threads"));
}

constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

}  // namespace

models::ImageLimits ServedImageLimits(const ServerOptions& options) {
  constexpr int64_t kBesideAnImageBytes = 4096;
  models::ImageLimits limits;
  limits.max_pixels = options.max_image_pixels;
  limits.max_bytes = std::min(limits.max_bytes, std::max<int64_t>(1, options.max_message_bytes - kBesideAnImageBytes));
  return limits;
}

absl::StatusOr<ServerOptions> ValidateServerOptions(ServerOptions options, const MachineLimits& machine) {
  LS_RETURN_IF_ERROR(CheckRepository(options.model_repository));
  const absl::StatusOr<Devices> devices = ParseServedDevices(options.serving.devices, machine);
  if (!devices.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices is '", options.serving.devices, "'; ", devices.status().message()));
  }
  LS_RETURN_IF_ERROR(CheckEncryption(options));
  if (options.threads == 0) options.threads = ThreadsPerWorker(machine.cpus, *devices);
  if (options.max_image_pixels == 0) {
    options.max_image_pixels =
        std::min(kDefaultMaxImagePixels, PixelsWithin(machine.memory_bytes / 4, options.preparation_threads));
  }
  LS_RETURN_IF_ERROR(CheckLargestImage(options, machine));
  if (!options.session_key_file.empty()) LS_RETURN_IF_ERROR(ReadSessionKey(options.session_key_file).status());
  LS_RETURN_IF_ERROR(CheckCorsOrigin(options.http_cors_origin));
  LS_RETURN_IF_ERROR(CheckTokenFile(options));
  if (options.max_connection_age_grace != absl::ZeroDuration() && options.max_connection_age == absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "--max-connection-age-grace needs --max-connection-age: connections have no maximum age");
  }
  LS_RETURN_IF_ERROR(CheckBuckets(options.latency_buckets));
  const std::string listen = options.listen.ToString();
  if (listen == options.http_listen.ToString() && (options.listen.is_unix() || options.listen.port != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--listen and --http-listen are both ", listen,
                                                   "; each needs its own ",
                                                   options.listen.is_unix() ? "socket" : "port"));
  }
  return options;
}

namespace {

// As many connections as `memory_bytes` and half of the file descriptors allow, from `min` to `max`.
ConnectionLimit ConnectionsWithin(int64_t memory_bytes, int64_t bytes_of_one, int64_t min, int64_t max) {
  rlimit files{};
  // The server raises its limit to the hard one.
  const auto room = getrlimit(RLIMIT_NOFILE, &files) == 0
                        ? static_cast<int64_t>(std::min(files.rlim_max / 2, static_cast<rlim_t>(max)))
                        : 0;
  const int64_t number = std::clamp(std::min(room, memory_bytes / bytes_of_one), min, max);
  return {.number = number, .bytes = number * bytes_of_one};
}

}  // namespace

ConnectionLimit HttpConnectionsOf(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kMinBytes = int64_t{16} << 20;
  constexpr int64_t kBytes = 32 << 10, kBytesWithTls = 64 << 10;  // measured
  return ConnectionsWithin(std::max(machine.memory_bytes / 16, kMinBytes),
                           options.tls.enabled() ? kBytesWithTls : kBytes, 16, 4096);
}

ConnectionLimit GrpcConnectionsOf(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kBytes = 64 << 10, kBytesWithTls = 192 << 10;  // measured, without calls
  return ConnectionsWithin(machine.memory_bytes / 32, options.tls.enabled() ? kBytesWithTls : kBytes, 256, 16384);
}

int64_t MessageBufferBytes(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kMin = int64_t{64} << 20;
  return std::max({machine.memory_bytes / 8, 4 * options.max_message_bytes, kMin});
}

RequestMemory RequestMemoryOf(const ServerOptions& options, const MachineLimits& machine) {
  constexpr int64_t kMinAnswers = int64_t{32} << 20, kMinTransfers = int64_t{64} << 20;
  constexpr int64_t kLog = int64_t{8} << 20, kTraces = int64_t{16} << 20;
  constexpr int64_t kBesideAPromptTokens = int64_t{64} << 10;  // options, generated tokens
  const int64_t memory = machine.memory_bytes;
  const int64_t prompts = 2 * (options.max_prompt_tokens + kBesideAPromptTokens) * kTokenBytes;
  constexpr int64_t kProbesFraction = 8;
  const int64_t probes = MessageBufferBytes(options, machine) / kProbesFraction;
  return {.messages = MessageBufferBytes(options, machine) - probes,
          .probes = probes,
          .answers = std::max(memory / 16, kMinAnswers),
          .transfers = options.session_key_file.empty() ? 0 : std::max(memory / 32, kMinTransfers),
          .connections = GrpcConnectionsOf(options, machine).bytes + HttpConnectionsOf(options, machine).bytes,
          .prompts = std::max(memory / 8, prompts),
          .sessions = std::max(memory / 64, prompts),
          .items = std::max(memory / 64, 2 * options.max_message_bytes),
          .log = kLog,
          .traces = options.tracing.endpoint.empty() ? 0 : kTraces};
}

int64_t DecodingBytes(const ServerOptions& options) {
  return options.preparation_threads * ServedImageLimits(options).DecodingBytes();
}

}  // namespace longshort::server
