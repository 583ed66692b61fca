// What the server is told: one struct, filled from the command line and files, checked before anything starts.
//
// The comments here are the long form of what `longshort-server --help` prints (server/options/command_line.cc). What
// concerns one model is the default for those whose serving.json does not say otherwise
// (server/options/serving_options.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/tls_files.h"
#include "server/options/machine_limits.h"
#include "server/options/tracing_options.h"

namespace longshort {

// Where to listen: a host name or address, and a port (0 lets the system choose).
struct ListenAddress {
  std::string host;
  int port = 0;

  // "host:port"; an IPv6 host stands in brackets.
  std::string ToString() const;
};

// Reads "host:port" or "[ipv6]:port". Errors: INVALID_ARGUMENT saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct ServerOptions {
  // Folder of models, <repository>/<model>/<version>/. Has no default: nothing can be served without.
  std::string model_repository;

  // How often the repository is looked at for new, changed and vanished versions, 100 ms to 1 h; 0 never.
  absl::Duration watch_repository = absl::ZeroDuration();
  // Whether clients may load and unload models (Models.LoadModel, UnloadModel).
  bool model_control = false;

  // gRPC. Loopback by default: being seen from outside is a decision to take, and needs `tls` or `insecure`.
  ListenAddress listen = {.host = "127.0.0.1", .port = 8500};
  // HTTP: /metrics, /livez, /readyz.
  ListenAddress http_listen = {.host = "127.0.0.1", .port = 8501};
  // Both ports speak TLS if there is a certificate; gRPC asks clients for theirs if there is a client_ca.
  TlsFiles tls;
  // Whether the ports may be beyond loopback without TLS: anybody on the way reads and changes what is sent then.
  bool insecure = false;
  // If not empty: written once both ports are open, as {"grpc": port, "http": port}. For port 0.
  std::string port_file;

  // Where models run: a list of "cpu", or "cpu:N" for N workers of each model, which share its weights, and "cuda:N"
  // for the GPU of that number (server/options/devices.h).
  std::string devices = "cpu";
  // Of weights and matrix products: "fp32" is exact, "bf16" halves memory and is faster.
  std::string precision = "fp32";
  // Threads of one model step, so of each worker, 1 to 1024. 0 divides the CPUs that the process may use (affinity and
  // cgroup) among a model's workers.
  int64_t threads = 0;

  // Sequences that run at once, per model, 1 to 65536, as far as the cache has room for them.
  int64_t max_streams = 64;
  // How long a step of a language model should take, 1 ms to 10 s, if there is so much to read: longer steps read more
  // tokens a second, and whatever comes waits for the end of one.
  absl::Duration step_time = absl::Milliseconds(20);
  // Memory for the cache of each language model, bytes, divided among its workers; 0 takes what 16 streams of any
  // length and a quarter more need for each worker, or half of the memory that is left.
  int64_t cache_bytes = 0;
  // Requests that wait, per model, before new ones are refused with RESOURCE_EXHAUSTED; 1 to 1048576.
  int64_t max_queued_requests = 1024;

  // Time that what waits for one model may be predicted to take, 1 ms to 1 h, before more is refused: about how long
  // the last of it waits.
  absl::Duration max_queue_time = absl::Seconds(60);
  // The same two of one client (x-client-id), and how many of its requests (of a classifier: items) run at once; 0 is
  // no limit. Those without an id are one client. None by default: where all calls are one client's, a limit is room
  // given away; the order of work shares what there is between clients as it is.
  int64_t max_queued_requests_per_client = 0;
  absl::Duration max_queue_time_per_client = absl::ZeroDuration();
  int64_t max_running_per_client = 0;

  // Items of one batch of a classifier, 1 to 1024. Each item in a batch waits for the whole of it.
  int64_t max_batch_size = 32;
  // Threads that decode images, for all models, 1 to 64.
  int64_t preparation_threads = 2;
  // Largest image, width times height, 1 to 64 Mi, and so that decoding (16 bytes a pixel on each thread) takes at most
  // half of the memory. 0 takes 64 Mi, or what lets it take a quarter.
  int64_t max_image_pixels = 0;

  // Largest request, bytes, 1 KiB to 1 GiB. The default takes the 5 MB test sets of the paper in one call.
  int64_t max_message_bytes = int64_t{8} << 20;
  // Longest prompt or document, tokens, 1 to 2^30. The default follows max_message_bytes: a byte is at most a token.
  int64_t max_prompt_tokens = int64_t{8} << 20;
  // Longest completion, tokens, 1 to 2^30.
  int64_t max_generate_tokens = 65536;

  // A session that was not used for so long ends, 1 s to 30 days.
  absl::Duration session_time_to_live = absl::Minutes(30);
  // File of the key, 32 to 4096 bytes, that seals sessions which are exported, and proves those that are imported:
  // servers that share it let clients move between them. Empty: no session is moved.
  std::string session_key_file;

  // File of who may call, with which token or certificate, and what (server/access/token_file.h). Empty: everybody may
  // do everything, and is the client that he says.
  std::string token_file;
  // Whether health needs the scope `observe` too: whoever asks without a token learns whether the server and its models
  // are up.
  bool protect_health = false;

  // How long after SIGTERM everything is served as before, but for what tells that the server is not ready; 0 to 1 h. 0
  // where no balancer has to find out.
  absl::Duration drain_delay = absl::ZeroDuration();
  // How long requests in flight may go on after that; 0 to 1 h.
  absl::Duration drain_timeout = absl::Seconds(25);
  // A stream that was silent for so long sends a keepalive message; 100 ms to 1 h. Shorter than what proxies usually
  // allow.
  absl::Duration keepalive_interval = absl::Seconds(15);
  // A client that takes no message of a stream for so long, while one waits for it, is cancelled; 100 ms to 1 h. Long
  // enough for a laptop that changes networks.
  absl::Duration slow_reader_timeout = absl::Seconds(30);

  // Whether every answer tells balancers how busy the server is (trailing metadata endpoint-load-metrics-bin).
  bool report_load = false;

  // A connection of gRPC that is so old takes no new calls, and its client makes another, 1 s to 20 days; 0 never.
  // Never by default: it is for balanced clients, which find new servers then, and nothing is gained where there is
  // one.
  absl::Duration max_connection_age = absl::ZeroDuration();
  // How long the calls of such a connection may still take, 1 s to 20 days; 0 until they end.
  absl::Duration max_connection_age_grace = absl::ZeroDuration();

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  // Upper bounds of the latency histograms, seconds, rising. 1-2-5 steps from 50 us to 200 s.
  std::vector<double> latency_buckets = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                         0.2,     0.5,    1,      2,      5,     10,    20,    50,   100,  200};

  // Where recorded calls go, as host:port or a URL; empty leaves it to OpenTelemetry's environment variables, without
  // which none is recorded.
  std::string otlp_endpoint;
  // Of the traces that begin here, how many are recorded, 0 to 1. Unset: OTEL_TRACES_SAMPLER, or all.
  std::optional<double> trace_sample_ratio;

  // What these and the environment's variables say: not for the command line.
  TracingOptions tracing;

  // Load everything, say what would be served, and exit.
  bool check_config = false;
};

// Checks every range above and fills what follows the machine (threads, max_image_pixels).
// Errors: INVALID_ARGUMENT naming the option, its value and the limit.
absl::StatusOr<ServerOptions> ValidateServerOptions(ServerOptions options, const MachineLimits& machine);

}  // namespace longshort
