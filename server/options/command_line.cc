#include "server/options/command_line.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/option_table.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr OptionRange<int64_t> kTokens = {1, 1 << 30};
constexpr OptionRange<absl::Duration> kPatience = {absl::Milliseconds(100), absl::Hours(1)};
// gRPC counts milliseconds in an int, and draws a tenth more or less.
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
      return absl::InvalidArgumentError("must be seconds with commas between, such as 0.001,0.01,0.1,1");
    }
    bounds.push_back(bound);
  }
  *buckets = std::move(bounds);
  return absl::OkStatus();
}

void AddPlaces(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Models:");
  table.Add(
      "model-repository", "DIR",
      "Folder of models: DIR/<model>/<version>/{config.json, model.safetensors, vocabulary.txt}. The newest version "
      "of each is served. Required.",
      &options.model_repository);
  table.Add("watch-repository", "duration",
            "Poll the repository at this interval. A new version is loaded and takes the place of the old one, which "
            "finishes its requests; one that does not load changes nothing. 0s never polls.",
            &options.watch_repository, {absl::Milliseconds(100), absl::Hours(1), true});
  table.AddSwitch("model-control",
                  "Let clients load and unload models (longshort.v1.Models LoadModel, UnloadModel). Off by default: it "
                  "changes what everybody is served.",
                  &options.model_control);
  table.BeginSection("Addresses:");
  table.AddCustom("listen", "host:port", options.listen.ToString(),
                  "Address of gRPC; port 0 lets the system choose. Loopback by default; beyond it --tls-certificate or "
                  "--insecure is needed. 0.0.0.0 is any IPv4 address, [::] any of both families.",
                  AddressReader(&options.listen));
  table.AddCustom("http-listen", "host:port", options.http_listen.ToString(),
                  "Address of HTTP: /metrics (Prometheus), /livez, /readyz. For trusted networks only; beyond loopback "
                  "--tls-certificate or --insecure is needed.",
                  AddressReader(&options.http_listen));
  table.Add("port-file", "FILE",
            "Write the ports, as {\"grpc\": n, \"http\": n}, once both are open. For scripts that use port 0.",
            &options.port_file);
}

void AddEncryption(OptionTable& table, ServerOptions& options) {
  table.BeginSection("TLS:");
  table.Add(
      "tls-certificate", "FILE",
      "PEM file of the server's certificate, and behind it those between it and an authority that clients know. "
      "Both ports speak TLS (1.2 or 1.3) then, and nothing else. It and the other files of TLS are read again when "
      "they change.",
      &options.tls.certificate);
  table.Add("tls-key", "FILE", "PEM file of the certificate's private key, which not everybody may read.",
            &options.tls.key);
  table.Add(
      "tls-client-ca", "FILE",
      "PEM file of authorities. Clients of gRPC must bring a certificate that one of them has signed (mutual TLS); "
      "HTTP asks for none, since probes have none.",
      &options.tls.client_ca);
  table.Add("tls-client-crl", "FILE",
            "PEM file of revocation lists, one of each authority of --tls-client-ca: certificates that they name are "
            "refused, and all certificates once a list is out of date.",
            &options.tls.client_crl);
  table.AddSwitch("insecure",
                  "Listen beyond loopback without TLS: anybody on the network path can read and change the traffic.",
                  &options.insecure);
}

void AddExecution(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Execution:");
  table.AddChoice<std::string>(
      "precision", {{"fp32", "fp32"}, {"bf16", "bf16"}},
      "Of weights, matrix products and cache pages. fp32 computes what the reference computes; bf16 halves the memory "
      "and is faster, at about three digits. Classifiers on the CPU compute in fp32 in both.",
      &options.precision);
  table.Add(
      "threads", "N",
      "Most threads of one model step, and so of each worker. One thread is used where that is about as fast, and "
      "while other programs want the same CPUs. 0 divides the CPUs that the process may use (its CPU affinity "
      "and the cgroup's limit, not the machine's size) among a model's workers.",
      &options.threads, {0, 1024});
  table.Add("preparation-threads", "N",
            "Threads that decode and resize images, for all models. Each may need 12 bytes for every pixel of the "
            "largest image.",
            &options.preparation_threads, {1, 64});
}

void AddLimits(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Largest requests:");
  table.Add("max-image-pixels", "N",
            "Largest image, width times height. Decoding on all --preparation-threads may take at most half of the "
            "memory. 0 takes 67108864, or fewer so that decoding takes at most a quarter.",
            &options.max_image_pixels, {0, models::ImageLimits().max_pixels});
  table.Add("max-message-bytes", "BYTES", "Largest request. The default (8 MiB) takes a 5 MB document in one call.",
            &options.max_message_bytes, {1 << 10, 1 << 30});
  table.Add("max-prompt-tokens", "N",
            "Longest prompt or document. Memory does not grow with it: the default only follows --max-message-bytes.",
            &options.max_prompt_tokens, kTokens);
  table.Add("max-generate-tokens", "N", "Longest completion.", &options.max_generate_tokens, kTokens);
}

void AddAccess(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Access and sessions:");
  table.Add("token-file", "FILE",
            "Who may call: a line for each token or client certificate, with scopes (infer, sessions, manage, "
            "observe), models, limits and expiry; for the owner's and group's eyes only. \"longshort token new NAME\" "
            "makes a token and its line. The file is read again when it changes. Without it everybody may do "
            "everything, as the client that x-client-id names.",
            &options.token_file);
  table.AddSwitch("protect-health",
                  "Health checks over gRPC need a token of the scope observe too, as reflection and /metrics do with "
                  "--token-file. Without this they are open to everybody, for load balancers that have no token.",
                  &options.protect_health);
  table.Add("session-key-file", "FILE",
            "Key of 32 to 4096 bytes, for the owner's and group's eyes only (head -c 32 /dev/urandom > FILE; chmod 600 "
            "FILE), that all servers share between which sessions may move (longshort.v1.Sessions ExportSession, "
            "ImportSession). Without it none are exported or imported.",
            &options.session_key_file);
}

void AddTraces(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Traces:");
  table.Add("otlp-endpoint", "host:port",
            "Collector of traces, which takes OTLP by gRPC (mostly on port 4317): host:port or http://host:port, "
            "https://host:port by TLS. Without it the variables OTEL_EXPORTER_OTLP_ENDPOINT and "
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT count, and without these nothing is recorded. The other OTEL_... "
            "variables hold as far as no option says otherwise.",
            &options.otlp_endpoint);
  table.Add("trace-sample-ratio", "R",
            "Part of the traces that is recorded, of those that begin at this server; of a client's trace the client "
            "has decided. The trace's id decides, so servers with one ratio decide alike. Without "
            "it OTEL_TRACES_SAMPLER counts, and without that all are recorded.",
            &options.trace_sample_ratio, kTraceSampleRatio);
}

void AddStreams(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Shutdown, streams and connections:");
  table.Add("drain-delay", "duration",
            "How long the server reports that it is not ready, and serves new calls as before, after SIGTERM, SIGINT "
            "or SIGHUP: as long as balancers take to send new connections elsewhere (Kubernetes: 10s).",
            &options.drain_delay, {absl::ZeroDuration(), absl::Hours(1)});
  table.Add("drain-timeout", "duration",
            "How long requests in flight may go on after that. With --drain-delay some seconds below the grace period "
            "of whatever stops the server (Kubernetes: 30 s; docker stop: 10 s). A second signal exits at once.",
            &options.drain_timeout, {absl::ZeroDuration(), absl::Hours(1)});
  table.Add("keepalive-interval", "duration",
            "A stream that was silent for so long sends a keepalive message. Below the idle timeout of the usual "
            "proxies (60s).",
            &options.keepalive_interval, kPatience);
  table.Add("slow-reader-timeout", "duration",
            "A client that takes no message of a stream for so long, while one (of 64 KiB, mostly) waits for it, is "
            "cancelled. Until then its completions pause and others go on. The same goes for long answers that are not "
            "streamed, and for clients that send less than 64 KiB of a session. The default is long enough for a "
            "laptop that changes networks.",
            &options.slow_reader_timeout, kPatience);
  table.Add(
      "max-connection-age", "duration",
      "A gRPC connection that is so old (give or take a tenth) takes no new calls, and its client makes another: so "
      "clients that choose among several servers find new ones. Calls in flight go on. 0s never.",
      &options.max_connection_age, kConnectionAge);
  table.Add("max-connection-age-grace", "duration",
            "How long the calls of such a connection may still take. 0s: until they end.",
            &options.max_connection_age_grace, kConnectionAge);
}

void AddOperation(OptionTable& table, ServerOptions& options) {
  table.BeginSection("Log and metrics:");
  table.AddSwitch("report-load",
                  "Tell with every answer how busy the server is (trailing metadata endpoint-load-metrics-bin, an "
                  "xds.data.orca.v3.OrcaLoadReport), for balancers that weigh servers by it.",
                  &options.report_load);
  table.AddChoice<LogFormat>("log-format", {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
                             "Form of the log lines on standard error; one line per request.", &options.log_format);
  table.AddChoice<LogLevel>("log-level",
                            {{"debug", LogLevel::kDebug},
                             {"info", LogLevel::kInfo},
                             {"warning", LogLevel::kWarning},
                             {"error", LogLevel::kError}},
                            "Least important line that is written.", &options.log_level);
  table.AddCustom("latency-buckets", "SECONDS,...", absl::StrJoin(options.latency_buckets, ","),
                  "Upper bounds of the latency histograms, in seconds, rising.",
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
      "Check the options, load every model, print what would be served, and exit: 0 if all is well, 1 if not. Ports "
      "are not tried: the server that is to be replaced may have them.",
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
        "Made by `longshort-server --help=markdown`. A model's serving.json has options as\n"
        "fields, with `_` for `-`.\n\n",
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
