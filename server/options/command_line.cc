#include "server/options/command_line.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/option_table.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

OptionTable::Reader AddressReader(ListenAddress* address) {
  return [address](const std::string& text) -> absl::Status {
    absl::StatusOr<ListenAddress> parsed = ParseListenAddress(text);
    if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
    *address = *std::move(parsed);
    return absl::OkStatus();
  };
}

absl::Status ReadLogFormat(const std::string& text, LogFormat* format) {
  if (text != "text" && text != "json") return absl::InvalidArgumentError("must be text or json");
  *format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

absl::Status ReadLogLevel(const std::string& text, LogLevel* level) {
  if (text == "debug") return *level = LogLevel::kDebug, absl::OkStatus();
  if (text == "info") return *level = LogLevel::kInfo, absl::OkStatus();
  if (text == "warning") return *level = LogLevel::kWarning, absl::OkStatus();
  if (text == "error") return *level = LogLevel::kError, absl::OkStatus();
  return absl::InvalidArgumentError("must be debug, info, warning or error");
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
  table.Add(
      "model-repository", "DIR",
      "Folder of models: DIR/<model>/<version>/{config.json, model.safetensors, vocabulary.txt}. The newest version "
      "of each is served. Required.",
      &options.model_repository);
  table.Add("watch-repository", "duration",
            "Look at the repository so often, 100ms to 1h: a new version is loaded and takes the place of the old one, "
            "which finishes its requests; one that does not load changes nothing. 0s never looks.",
            &options.watch_repository);
  table.AddSwitch("model-control",
                  "Let clients load and unload models (longshort.v1.Models LoadModel, UnloadModel). Off by default: it "
                  "changes what everybody is served.",
                  &options.model_control);
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
                  "Listen beyond loopback without TLS: whoever is on the way reads and changes what is sent.",
                  &options.insecure);
}

void AddExecution(OptionTable& table, ServerOptions& options) {
  table.Add("devices", "LIST",
            "Where models run, a list separated by commas: cpu, or cpu:N for N workers of each model (1 to 64), which "
            "share its weights and have a cache each; cuda:N for the GPU of that number, in a build for GPUs. More "
            "workers than one help where a step cannot keep all cores busy.",
            &options.devices);
  table.Add("precision", "fp32|bf16",
            "Of weights, matrix products and cache pages. fp32 computes what the reference computes; bf16 halves the "
            "memory and is faster, at about three digits. Classifiers on the CPU compute in fp32 in both.",
            &options.precision);
  table.Add("threads", "N",
            "Threads of one model step at the most, so of each worker, 1 to 1024: one is taken where that is about as "
            "fast, and while other programs want the same CPUs. 0 divides what the process may use "
            "(its CPU affinity and the cgroup's limit, not the machine's size) among a model's workers.",
            &options.threads);
}

void AddLimits(OptionTable& table, ServerOptions& options) {
  table.Add("max-streams", "N",
            "Sequences that run at once, per model, 1 to 65536, as far as the cache has room for them: each reserves "
            "what it can need of it.",
            &options.max_streams);
  table.Add(
      "step-time", "duration",
      "How long a step of a language model should take, 1ms to 10s, if there is so much to read. Longer steps read "
      "more tokens a second, which is for scoring in bulk (250ms); whatever comes waits for the end of one, and "
      "streams stutter.",
      &options.step_time);
  table.Add("cache-bytes", "N",
            "Memory for the cache of each language model, bytes, taken as it is used. What running sequences leave of "
            "it keeps prefixes and conversations. More than there is is refused at the start. 0 takes what 16 "
            "sequences of any length and a quarter more need, or half of what other models leave of the memory (the "
            "cgroup's limit).",
            &options.cache_bytes);
  table.Add("max-queued-requests", "N",
            "Requests that may wait, per model, 1 to 1048576, before more are refused with RESOURCE_EXHAUSTED: a long "
            "queue only makes everybody late.",
            &options.max_queued_requests);
  table.Add("max-queue-time", "duration",
            "Time that what waits for a model may be predicted to take, 1ms to 1h, before more is refused with "
            "RESOURCE_EXHAUSTED: about how long the last of it waits. Shorter keeps those who are admitted fast under "
            "overload; it should be long enough for the largest call of many items.",
            &options.max_queue_time);
  table.Add(
      "max-queued-requests-per-client", "N",
      "As --max-queued-requests, of the requests of one client (metadata x-client-id; those without an id are one "
      "client), up to 1048576. 0 is no limit: the order of work shares what there is between clients as it is.",
      &options.max_queued_requests_per_client);
  table.Add("max-queue-time-per-client", "duration",
            "As --max-queue-time, of what waits of one client, up to 1h. 0 is no limit.",
            &options.max_queue_time_per_client);
  table.Add("max-running-per-client", "N",
            "Requests of one client (of a classifier: items) that run at once, per model, up to 65536; more wait while "
            "others pass. 0 is no limit.",
            &options.max_running_per_client);
  table.Add(
      "max-batch-size", "N",
      "Items of one batch of a classifier, 1 to 1024. A batch is what waits when the model is free; larger ones use "
      "wide machines better and make each item wait for the whole.",
      &options.max_batch_size);
  table.Add("preparation-threads", "N",
            "Threads that decode and resize images, for all models, 1 to 64. Each may need 16 bytes for every pixel of "
            "the largest image.",
            &options.preparation_threads);
  table.Add("max-image-pixels", "N",
            "Largest image, width times height, 1 to 67108864, and so that decoding on all --preparation-threads takes "
            "at most half of the memory. 0 takes 67108864, or what lets it take a quarter.",
            &options.max_image_pixels);
  table.Add("max-message-bytes", "BYTES",
            "Largest request, 1024 to 1073741824. The default (8 MiB) takes a 5 MB document in one call.",
            &options.max_message_bytes);
  table.Add("max-prompt-tokens", "N",
            "Longest prompt or document, 1 to 1073741824. Memory does not grow with it: the default only follows "
            "--max-message-bytes.",
            &options.max_prompt_tokens);
  table.Add("max-generate-tokens", "N", "Longest completion, 1 to 1073741824.", &options.max_generate_tokens);
}

void AddAccess(OptionTable& table, ServerOptions& options) {
  table.Add("token-file", "FILE",
            "Who may call: a line for each token or client certificate, with scopes (infer, sessions, manage, "
            "observe), models, limits and expiry; for the owner's and group's eyes only. \"longshort token new NAME\" "
            "makes a token and its line. The file is read again when it changes. Without it everybody may do "
            "everything, and is the client that he says (x-client-id).",
            &options.token_file);
  table.AddSwitch("protect-health",
                  "Health checks over gRPC need a token of the scope observe too, as reflection and /metrics do with "
                  "--token-file. Without this they are open to everybody, for load balancers that have no token.",
                  &options.protect_health);
}

void AddTraces(OptionTable& table, ServerOptions& options) {
  table.Add("otlp-endpoint", "host:port",
            "Collector of traces, which takes OTLP by gRPC (mostly on port 4317): host:port or http://host:port, "
            "https://host:port by TLS. Without it the variables OTEL_EXPORTER_OTLP_ENDPOINT and "
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT count, and without these nothing is recorded. The other OTEL_... "
            "variables hold as far as no option says otherwise.",
            &options.otlp_endpoint);
  table.Add("trace-sample-ratio", "R",
            "Part of the traces that is recorded, 0 to 1, of those that begin at this server; of a client's trace "
            "the client has decided. The trace's id decides, so servers with one ratio decide alike. Without "
            "it OTEL_TRACES_SAMPLER counts, and without that all are recorded.",
            &options.trace_sample_ratio);
}

void AddOperation(OptionTable& table, ServerOptions& options) {
  table.Add("session-time-to-live", "duration",
            "A session that was not used for so long ends, 1s to 720h. Its tokens are kept until then; its cache only "
            "while nothing else needs the room.",
            &options.session_time_to_live);
  table.Add("session-key-file", "FILE",
            "Key of 32 to 4096 bytes, for the owner's and group's eyes only (head -c 32 /dev/urandom > FILE; chmod 600 "
            "FILE), that all servers share between which sessions may move (longshort.v1.Sessions ExportSession, "
            "ImportSession). Without it none are exported or imported.",
            &options.session_key_file);
  table.Add("drain-delay", "duration",
            "How long the server says that it is not ready, and serves what comes as before, after SIGTERM, SIGINT or "
            "SIGHUP, 0 to 1h: as long as balancers take to send new connections elsewhere (Kubernetes: 10s).",
            &options.drain_delay);
  table.Add("drain-timeout", "duration",
            "How long requests in flight may go on after that, 0 to 1h. With --drain-delay some seconds below the "
            "grace period of whatever stops the server (Kubernetes: 30 s; docker stop: 10 s). A second signal exits "
            "at once.",
            &options.drain_timeout);
  table.Add("keepalive-interval", "duration",
            "A stream that was silent for so long sends a keepalive message, 100ms to 1h. Below the idle timeout of "
            "the usual proxies (60s).",
            &options.keepalive_interval);
  table.Add("slow-reader-timeout", "duration",
            "A client that takes no message of a stream for so long, 100ms to 1h, while one (of 64 KiB, mostly) waits "
            "for it, is cancelled. Until then its completions pause and others go on. The same goes for long answers "
            "that are not streamed, and for clients that send less than 64 KiB of a session.",
            &options.slow_reader_timeout);
  table.AddSwitch("report-load",
                  "Tell with every answer how busy the server is (trailing metadata endpoint-load-metrics-bin, an "
                  "xds.data.orca.v3.OrcaLoadReport), for balancers that weigh servers by it.",
                  &options.report_load);
  table.Add(
      "max-connection-age", "duration",
      "A gRPC connection that is so old, 1s to 480h (give or take a tenth), takes no new calls, and its client makes "
      "another: so clients that choose among several servers find new ones. Calls in flight go on. 0s never.",
      &options.max_connection_age);
  table.Add("max-connection-age-grace", "duration",
            "How long the calls of such a connection may still take, 1s to 480h. 0s: until they end.",
            &options.max_connection_age_grace);
  table.AddCustom("log-format", "text|json", "text", "Form of the log lines on standard error; one line per request.",
                  [&options](const std::string& text) { return ReadLogFormat(text, &options.log_format); });
  table.AddCustom("log-level", "debug|info|warning|error", "info", "Least important line that is written.",
                  [&options](const std::string& text) { return ReadLogLevel(text, &options.log_level); });
  table.AddCustom("latency-buckets", "SECONDS,...", absl::StrJoin(options.latency_buckets, ","),
                  "Upper bounds of the latency histograms, in seconds, rising.",
                  [&options](const std::string& text) { return ReadBuckets(text, &options.latency_buckets); });
  table.AddSwitch(
      "check-config",
      "Check the options, load every model, print what would be served, and exit: 0 if all is well, 1 if not. Ports "
      "are not tried: the server that is to be replaced may have them.",
      &options.check_config);
}

OptionTable MakeTable(CommandLine& line) {
  OptionTable table;
  AddPlaces(table, line.options);
  AddEncryption(table, line.options);
  AddExecution(table, line.options);
  AddLimits(table, line.options);
  AddAccess(table, line.options);
  AddTraces(table, line.options);
  AddOperation(table, line.options);
  table.AddSwitch("help", "Print this and exit.", &line.help);
  table.AddSwitch("version", "Print the version and exit.", &line.version);
  return table;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  LS_RETURN_IF_ERROR(MakeTable(line).Parse(arguments));
  return line;
}

std::string HelpText() {
  CommandLine defaults;
  return absl::StrCat(
      "longshort-server: serves Transformer-LS models over gRPC.\n\n"
      "  longshort-server --model-repository=models/zoo\n"
      "  longshort-server describe MODEL_OR_CONFIG     prints what a model costs (describe --help)\n\n"
      "Options (--name=value or --name value):\n",
      MakeTable(defaults).Help());
}

}  // namespace longshort
