// The server's options: one struct, filled from the command line and files, checked before anything starts.
//
// This header has names and defaults. The meaning, unit, range and the reason of the default of each option are in its
// row (server/options/command_line.cc, serving_options.cc), which `longshort-server --help` prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "models/images/image_header.h"
#include "server/access/tls_files.h"
#include "server/options/listening_sockets.h"
#include "server/options/machine.h"
#include "server/options/serving_options.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct ServerOptions {
  // Required.
  std::string model_repository;
  bool strict = false;  // the server does not start unless all models fit
  // 0: the server does not poll.
  absl::Duration watch_repository = absl::ZeroDuration();
  bool model_control = false;

  // Loopback by default: to be reachable from outside is a decision, and needs `tls` or `insecure`.
  ListenAddress listen = {.host = "127.0.0.1", .port = 8500};
  int64_t listen_mode = kDefaultSocketMode;  // of the file, if `listen` is a Unix socket
  ListenAddress http_listen = {.host = "127.0.0.1", .port = 8501};
  bool http_inference = true;  // false: HTTP has metrics and probes only
  bool http_page = true;
  std::string http_cors_origin;
  std::vector<std::string> http_hosts;  // names in lower case that a loopback http_listen serves, beside localhost
  absl::Duration http_idle_timeout = absl::Seconds(75);
  std::string port_file;
  // Both ports use TLS if there is a certificate. Calls need client certificates, too, if there is a client_ca.
  TlsFiles tls;
  bool insecure = false;

  std::string precision = "fp32";
  // 0 until ValidateServerOptions.
  int64_t threads = 0;
  int64_t preparation_threads = 2;

  // How each model is served unless its serving.json says otherwise.
  ServingOptions serving;

  // 0 until ValidateServerOptions.
  int64_t max_image_pixels = 0;
  int64_t max_message_bytes = int64_t{8} << 20;
  int64_t max_inputs = 2048;
  int64_t max_prompt_tokens = int64_t{8} << 20;
  int64_t max_generate_tokens = 65536;

  std::string session_key_file;
  std::string token_file;
  bool trust_client_id = false;
  bool protect_health = false;

  absl::Duration drain_delay = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(25);
  absl::Duration keepalive_interval = absl::Seconds(15);
  absl::Duration ping_interval = absl::Seconds(20);
  absl::Duration slow_reader_timeout = absl::Seconds(30);
  bool report_load = false;
  // 0 is no limit for either.
  absl::Duration max_connection_age = absl::ZeroDuration();
  absl::Duration max_connection_age_grace = absl::ZeroDuration();

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  int64_t log_requests = 1;  // one of so many calls that succeed; 0: none
  std::vector<double> latency_buckets = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                         0.2,     0.5,    1,      2,      5,     10,    20,    50,   100,  200};

  std::string otlp_endpoint;
  std::optional<double> trace_sample_ratio;
  // Derived from these two and the environment variables.
  TracingOptions tracing;

  bool check_config = false;
};

// The largest image by default, where there is memory for it. Models see 0.05 to 0.2 megapixels, and photos of 24
// megapixels are usual. A file of 40 bytes can hold as many pixels as the limit allows.
inline constexpr int64_t kDefaultMaxImagePixels = 25'000'000;

// Checks what the rows' ranges do not cover (files, devices, what depends on the machine or on another option), and
// computes the defaults that depend on the machine (threads, max_image_pixels). Errors: INVALID_ARGUMENT naming the
// option, its value and the limit.
absl::StatusOr<ServerOptions> ValidateServerOptions(ServerOptions options, const MachineLimits& machine);

// Limits of images: the pixels of --max-image-pixels, and the bytes that fit in a message. With a model's name of 255
// bytes, options and lengths, a ClassifyImage call holds less than 4 KiB beside its image. REQUIRES: the options were
// validated.
models::ImageLimits ServedImageLimits(const ServerOptions& options);

// Shares of the machine's memory that are not for weights and caches:

// Maximum connections, and the bytes that they hold before their calls.
struct ConnectionLimit {
  int64_t number = 0;
  int64_t bytes = 0;
};
// A 16th of the memory, at least 16 MiB; half of the file descriptors that the process may have; at most 4096.
ConnectionLimit HttpConnectionsOf(const ServerOptions& options, const MachineLimits& machine);
// A 32nd of the memory, at least 256 connections; half of the file descriptors; at most 16384.
ConnectionLimit GrpcConnectionsOf(const ServerOptions& options, const MachineLimits& machine);

// Bytes of messages that gRPC may buffer: an eighth of the memory, at least 64 MiB and four of the largest messages.
int64_t MessageBufferBytes(const ServerOptions& options, const MachineLimits& machine);

// Maximum bytes that the preparation threads need at once.
int64_t DecodingBytes(const ServerOptions& options);

// The memory of requests in bytes, by part (server/call/call_memory.h).
struct RequestMemory {
  int64_t messages = 0;     // MessageBufferBytes, without the probes
  int64_t probes = 0;       // an eighth of it
  int64_t answers = 0;      // a 16th of the memory, at least 32 MiB, which is eight of the largest
  int64_t transfers = 0;    // a 32nd, at least 64 MiB; 0 if the server moves no sessions
  int64_t connections = 0;  // both kinds
  int64_t prompts = 0;      // an eighth, at least two of the longest prompts
  int64_t sessions = 0;     // a 64th, at least two of the longest prompts
  int64_t items = 0;        // a 64th, at least two of the largest messages
  int64_t log = 0;
  int64_t traces = 0;

  int64_t all() const {
    return messages + probes + answers + transfers + connections + prompts + sessions + items + log + traces;
  }
};
RequestMemory RequestMemoryOf(const ServerOptions& options, const MachineLimits& machine);

// The command line: the options, and what to do.
struct CommandLine {
  ServerOptions options;
  // Print something and exit 0, without checking the options.
  HelpForm help = HelpForm::kNone;
  bool version = false;
};

// Parses the arguments after the program's name. ValidateServerOptions checks what depends on files, on the machine or
// on several options.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// What --help prints. REQUIRES: form is not kNone.
std::string HelpText(HelpForm form);

}  // namespace longshort::server
