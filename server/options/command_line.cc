#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "server/options/server_options.h"

namespace longshort::server {
namespace {

constexpr OptionRange<int64_t> kTokens = {1, 1 << 30};
constexpr OptionRange<absl::Duration> kPatience = {absl::Milliseconds(100), absl::Hours(1)};
// gRPC stores milliseconds in an int, and varies the age by a tenth.
constexpr OptionRange<absl::Duration> kConnectionAge = {absl::Seconds(1), absl::Hours(480), true};

OptionTable::Reader AddressReader(ListenAddress* address) {
  return [address](const std::string& text) -> absl::Status {
    absl::StatusOr<ListenAddress> parsed = ParseListenAddress(text);
    if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
    *address = *std::move(parsed);
    return absl::OkStatus();
  };
}

absl::Status ReadBuckets(const std::string& text, std::vector<double>* buckets) {
  std::vector<double> bounds;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    double bound = 0;
    if (!absl::SimpleAtod(item, &bound)) {
      return absl::InvalidArgumentError("must be seconds separated by commas, such as 0.001,0.01,0.1,1");
    }
    bounds.push_back(bound);
  }
  *buckets = std::move(bounds);
  return absl::OkStatus();
}

absl::Status ReadMode(const std::string& text, int64_t* mode) {
  constexpr int kOctal = 8;
  constexpr int64_t kMax = 0777;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *mode, kOctal);
  if (error != std::errc() || end != text.data() + text.size() || *mode < 0 || *mode > kMax) {
    return absl::InvalidArgumentError("must be an octal number from 0 to 777, such as 660");
  }
  return absl::OkStatus();
}

absl::Status ReadLogRequests(const std::string& text, int64_t* one_of) {
  int64_t number = 0;
  if (text == "all") number = 1;
  if (text != "all" && text != "errors" && (!absl::SimpleAtoi(text, &number) || number < 1)) {
    return absl::InvalidArgumentError("must be all, errors, or a whole number of at least 1");
  }
  *one_of = number;
  return absl::OkStatus();
}

void AddPlaces(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Models:");
  table.Add("model-repository", "DIR",
            "Folder of models: DIR/<model>/<version>/{config.json, model.safetensors, vocabulary.txt}. The server "
            "serves the newest version of each model. Required.",
            &options.model_repository);
  table.Add("watch-repository", "duration",
            "Poll the repository at this interval. The server loads a new version, or one whose files have changed, "
            "and then moves requests to it; the old one finishes the requests it has. A version that does not load, or "
            "that is still being written, changes nothing. 0s: the server does not poll.",
            &options.watch_repository, {absl::Milliseconds(100), absl::Hours(1), true});
  table.AddSwitch(
      "strict",
      "Do not start unless every model can be loaded. By default the server serves the models that it can load, in the "
      "order of their names while they fit in the memory; the log, ListModels and longshort_models_not_loaded say "
      "which it cannot.",
      &options.strict);
  table.AddSwitch("model-control",
                  "Let clients load and unload models (longshort.v1.Models LoadModel, UnloadModel). Off by default, "
                  "because it changes what all clients are served.",
                  &options.model_control);
  table.AddOtherNames({"model", "model-dir", "model-path", "model-repo", "model-store", "models"},
                      "--model-repository=DIR");
  table.BeginSection("Addresses:");
  table.AddOtherNames({"address", "bind", "grpc-address", "grpc-port", "host", "port"},
                      "--listen=HOST:PORT (gRPC) or --http-listen=HOST:PORT (HTTP)");
  table.AddOtherNames({"http-address", "http-port", "metrics-port", "rest-port"}, "--http-listen=HOST:PORT");
  table.AddCustom(
      "listen", "host:port|unix:/path", options.listen.ToString(),
      "Address of gRPC. With port 0 the system chooses a port. Loopback by default; any other address needs "
      "--tls-certificate or --insecure. 0.0.0.0 is all IPv4 addresses, [::] all IPv4 and IPv6 addresses. unix:/path is "
      "a Unix socket, for clients on this machine, such as a sidecar; the server removes it when it stops.",
      AddressReader(&options.listen));
  table.AddCustom("listen-mode", "octal", "660",
                  "Mode of the files of Unix sockets (--listen=unix:/path, --http-listen=unix:/path): clients "
                  "need write permission to connect.",
                  [&options](const std::string& text) { return ReadMode(text, &options.listen_mode); });
  table.AddCustom(
      "http-listen", "host:port|unix:/path", options.http_listen.ToString(),
      "Address of HTTP, in the forms of --listen. It serves every call as JSON, the page at /, /metrics (Prometheus), "
      "/livez and /readyz. An address other than loopback needs --tls-certificate or --insecure.",
      AddressReader(&options.http_listen));
  const std::vector<std::pair<std::string, bool>> either = {{"true", true}, {"false", false}};
  table.AddChoice("http-inference", either,
                  "Serve calls and the page by HTTP. false leaves /metrics, /livez and /readyz.",
                  &options.http_inference);
  table.AddChoice("http-page", either, "Serve the pages at / and /docs for browsers.", &options.http_page);
  table.Add(
      "http-cors-origin", "ORIGIN",
      "Let the pages of this origin, such as https://example.com, call the server from a browser (CORS). * is every "
      "origin. Without this option only the server's own page may call it.",
      &options.http_cors_origin);
  table.AddCustom(
      "http-host", "NAME[,NAME]", "none",
      "Serve these names of hosts (the field Host), beside localhost and loopback addresses. It counts only if "
      "--http-listen is a loopback address and there is no --token-file: there any web page could otherwise call the "
      "server from its visitor's browser, by a name that it lets DNS turn into 127.0.0.1. A proxy on this machine that "
      "passes its own name on needs it.",
      [&options](const std::string& text) {
        options.http_hosts = absl::StrSplit(absl::AsciiStrToLower(text), ',', absl::SkipEmpty());
        return absl::OkStatus();
      });
  table.Add("http-idle-timeout", "duration",
            "Close an HTTP connection without a request after this time. Proxies and balancers that keep connections "
            "for longer must not reuse one that has been idle for this time, or some requests fail.",
            &options.http_idle_timeout, kPatience);
  table.Add("port-file", "FILE",
            "Write the ports to FILE, as {\"grpc\": n, \"http\": n}, once both are open, for scripts that use port 0. "
            "A Unix socket has the number 0.",
            &options.port_file);
}

void AddEncryption(OptionTable& table, ServerOptions& options) {
  table.BeginSection("TLS:");
  table.Add("tls-certificate", "FILE",
            "PEM file of the server's certificate, followed by the intermediate certificates, if any. With it both "
            "ports accept TLS 1.2 and 1.3 only. The server reads this and the other TLS files again when they change.",
            &options.tls.certificate);
  table.Add("tls-key", "FILE", "PEM file of the certificate's private key. It must not be readable by all users.",
            &options.tls.key);
  table.Add("tls-client-ca", "FILE",
            "PEM file of certificate authorities. Clients that call by gRPC or HTTP must present a certificate that "
            "one of them has signed (mutual TLS). Metrics and probes need none.",
            &options.tls.client_ca);
  table.Add("tls-client-crl", "FILE",
            "PEM file of certificate revocation lists, one for each authority in --tls-client-ca. The server refuses "
            "revoked certificates, and all certificates once a list has expired.",
            &options.tls.client_crl);
  table.AddSwitch(
      "insecure",
      "Listen on addresses other than loopback without TLS. The traffic can be read and changed on the network path.",
      &options.insecure);
}

void AddExecution(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Execution:");
  table.AddChoice<std::string>("precision", {{"fp32", "fp32"}, {"bf16", "bf16"}, {"int8", "int8"}},
                               "Precision of weights, matrix products and cache pages. fp32 computes what the "
                               "reference computes. bf16 halves the memory and is faster, with about three significant "
                               "digits. Classifiers compute in fp32 on CPUs without AMX, and small text classifiers on "
                               "all CPUs. int8, for CPUs, also halves the weights of language models again, and lets "
                               "classifiers multiply in int8 on CPUs with AVX-512 VNNI and without AMX; all else is as "
                               "with bf16.",
                               &options.precision);
  table.Add("threads", "N",
            "Maximum threads of one worker's model step. A step uses one thread where that is about as fast, and while "
            "other programs use the same CPUs. 0 divides the CPUs that the process may use (its CPU affinity and "
            "cgroup limit) among a model's workers.",
            &options.threads, {0, 1024});
  table.Add("preparation-threads", "N",
            "Threads that decode and resize images, for all models. Each may need 12 bytes for every pixel of the "
            "largest image.",
            &options.preparation_threads, {1, 64});
}

void AddLimits(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Largest requests:");
  table.Add("max-image-pixels", "N",
            "Largest image in pixels, width times height. A value with which decoding on all --preparation-threads "
            "could take over half of the memory is refused. 0: 25000000, or fewer, so that decoding takes at most a "
            "quarter. Raise it for photos of larger cameras: a small file can hold as many pixels as this allows.",
            &options.max_image_pixels, {0, models::ImageLimits().max_pixels});
  table.Add("max-message-bytes", "BYTES",
            "Largest request message. The default (8 MiB) has room for a document of 5 MB.", &options.max_message_bytes,
            {1 << 10, 1 << 30});
  table.Add("max-inputs", "N",
            "Maximum number of texts in one call that scores, classifies or embeds. The server gives them to the "
            "engine in parts, so "
            "that other clients' calls run between them.",
            &options.max_inputs, {1, 1 << 14});
  table.Add("max-prompt-tokens", "N",
            "Longest prompt or document. Memory does not grow with it. The default is the same number as that of "
            "--max-message-bytes, but does not change with it.",
            &options.max_prompt_tokens, kTokens);
  table.Add("max-generate-tokens", "N", "Longest completion.", &options.max_generate_tokens, kTokens);
}

void AddAccess(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Access and sessions:");
  table.AddOtherNames({"api-key", "api-keys", "token", "tokens"}, "--token-file=FILE");
  table.Add(
      "token-file", "FILE",
      "Access control: a line for each bearer token or client certificate, with its scopes (infer, sessions, "
      "manage, observe), models, limits and expiry. Only owner and group may have access to the file. "
      "\"longshort token new NAME\" makes a token and its line. The server reads the file again when it changes. "
      "Without this option every client may call everything, and the server distinguishes clients by their addresses.",
      &options.token_file);
  table.AddSwitch(
      "trust-client-id",
      "Without --token-file, distinguish clients by the x-client-id of their calls, which a proxy that knows them "
      "sets. Without this option the server distinguishes them by their addresses, because a client can invent any "
      "number of names.",
      &options.trust_client_id);
  table.AddSwitch("protect-health",
                  "Health checks over gRPC also need a token with the scope observe, as reflection and /metrics do "
                  "with --token-file. Without this option health checks are open, for load balancers without a token.",
                  &options.protect_health);
  table.Add("session-key-file", "FILE",
            "File of a secret key of 32 to 4096 bytes, which authenticates sessions that move between servers "
            "(longshort.v1.Sessions ExportSession, ImportSession). All these servers need the same key. Only owner and "
            "group may have access to the file (head -c 32 /dev/urandom > FILE; chmod 600 FILE). Without this option "
            "the server neither exports nor imports sessions.",
            &options.session_key_file);
}

void AddTraces(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Traces:");
  table.Add(
      "otlp-endpoint", "host:port",
      "Collector of traces, which accepts OTLP over HTTP (usually on port 4318): host:port or http://host:port without "
      "TLS, https://host:port with TLS. The default path is /v1/traces. Without this option the server uses the "
      "environment variables OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT; without these it "
      "records no traces. An option overrides its OTEL_... variable.",
      &options.otlp_endpoint);
  table.Add("trace-sample-ratio", "R",
            "Ratio of traces to record, for traces that begin at this server. For a client's trace the client decides. "
            "The decision depends on the trace id, so servers with the same ratio record the same traces. Without this "
            "option OTEL_TRACES_SAMPLER decides; without that all traces are recorded.",
            &options.trace_sample_ratio, kTraceSampleRatio);
}

void AddStreams(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Shutdown, streams and connections:");
  table.Add("drain-delay", "duration",
            "After SIGTERM, SIGINT or SIGHUP, how long the server reports that it is not ready but still serves new "
            "calls. Choose the time that load balancers need to send new connections elsewhere (Kubernetes: 10s).",
            &options.drain_delay, {absl::ZeroDuration(), absl::Hours(1)});
  table.Add("drain-timeout", "duration",
            "How long calls in flight may run after --drain-delay. The sum of both should be some seconds below the "
            "grace period of the service manager (Kubernetes: 30 s; docker stop: 10 s). A second signal makes the "
            "server exit at once.",
            &options.drain_timeout, {absl::ZeroDuration(), absl::Hours(1)});
  table.Add("keepalive-interval", "duration",
            "A streaming call that has sent nothing for this time sends a keepalive message. The default is below the "
            "usual idle timeout of proxies (60s).",
            &options.keepalive_interval, kPatience);
  table.Add(
      "ping-interval", "duration",
      "A connection on which nothing came for this time gets an HTTP/2 ping, also while no call is open. It keeps "
      "load balancers that forward connections from forgetting it, and detects clients that vanished: a client "
      "that does not answer within 20s is disconnected. The default is below their usual idle timeout (30s). "
      "HTTP proxies do not forward pings: their timeouts must be longer than the longest silent call.",
      &options.ping_interval, {absl::Seconds(1), absl::Hours(1)});
  table.Add("slow-reader-timeout", "duration",
            "Cancel a call whose client reads no message for this time while at least one message (usually 64 KiB) is "
            "unread. Until then the call's completions pause and other requests continue. The same limit applies to "
            "long answers of unary calls, and to clients that send less than 64 KiB of a session in this time. The "
            "default is long enough for a laptop that changes networks.",
            &options.slow_reader_timeout, kPatience);
  table.Add("max-connection-age", "duration",
            "Maximum age of a gRPC connection, plus or minus a tenth. An older connection accepts no new calls; its "
            "client opens another one and so finds new servers. Calls in flight continue. 0s: no limit.",
            &options.max_connection_age, kConnectionAge);
  table.Add("max-connection-age-grace", "duration",
            "How long calls in flight may run after --max-connection-age. 0s: until they end.",
            &options.max_connection_age_grace, kConnectionAge);
}

void AddOperation(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Log and metrics:");
  table.AddSwitch("report-load",
                  "Report the server's load with every answer (trailing metadata endpoint-load-metrics-bin, an "
                  "xds.data.orca.v3.OrcaLoadReport), for load balancers that weigh servers by it.",
                  &options.report_load);
  table.AddChoice<LogFormat>("log-format", {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                             "Format of the log lines on standard error; one line for each call.", &options.log_format);
  table.AddChoice<LogLevel>("log-level",
                            {{"debug", LogLevel::kDebug},
                             {"info", LogLevel::kInfo},
                             {"warning", LogLevel::kWarning},
                             {"error", LogLevel::kError}},
                            "Least severe level that is logged.", &options.log_level);
  table.AddCustom("log-requests", "all|errors|N", "all",
                  "Which calls have a line in the log: all, only those that do not end with OK, or these and one of N "
                  "others, chosen at random.",
                  [&options](const std::string& text) { return ReadLogRequests(text, &options.log_requests); });
  table.AddCustom("latency-buckets", "SECONDS,...", absl::StrJoin(options.latency_buckets, ","),
                  "Upper bounds of the latency histograms, in seconds, in increasing order.",
                  [&options](const std::string& text) { return ReadBuckets(text, &options.latency_buckets); });
}

OptionTable MakeTable(CommandLine& line) {
  ServerOptions& options = line.options;
  OptionTable table;
  AddPlaces(table, options);
  AddEncryption(table, options);
  AddAccess(table, options);
  AddExecution(table, options);
  AddServingOptions(table, options.serving);
  AddLimits(table, options);
  AddStreams(table, options);
  AddOperation(table, options);
  AddTraces(table, options);
  table.BeginSection("Instead of serving:");
  table.AddSwitch(
      "check-config",
      "Check the options, load every model, print what would be served, and exit with status 0 if all is well, 1 if "
      "not. This does not open the ports, so it can run beside the server that is to be replaced.",
      &options.check_config);
  table.AddHelp(&line.help, HelpForm::kMarkdown);
  table.AddSwitch("version", "Print the version and exit.", &line.version);
  return table;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  LS_RETURN_IF_ERROR(MakeTable(line).Parse(arguments));
  return line;
}

std::string HelpText(HelpForm form) {
  CommandLine defaults;
  const OptionTable table = MakeTable(defaults);
  if (form == HelpForm::kMarkdown) {
    return absl::StrCat(
        "# Options of longshort-server\n\n"
        "Generated by `longshort-server --help=markdown`. In a model's serving.json, an option is a\n"
        "field of the same name, with `_` for `-`.\n\n",
        table.Markdown(), "\n", ServingFieldsMarkdown(), "\n", TracingVariablesMarkdown());
  }
  return absl::StrCat(
      "longshort-server: serves Transformer-LS models over gRPC.\n\n"
      "  longshort-server --model-repository=models/zoo\n"
      "  longshort-server describe MODEL_OR_CONFIG     prints what a model costs (describe --help)\n\n"
      "Options (--name=value or --name value):\n\n",
      table.Help());
}

}  // namespace longshort::server
