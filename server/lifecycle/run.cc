#include "server/lifecycle/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/thread_variables.h"
#include "longshort_version.h"
#include "server/lifecycle/port_file.h"
#include "server/lifecycle/server.h"
#include "server/lifecycle/signals.h"
#include "server/model_control/load_models.h"
#include "server/monitoring/logger.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"
#include "server/transports/grpc_1_51/connection_listener.h"
#include "server/transports/grpc_1_51/grpc_workarounds.h"

namespace longshort::server {
namespace {

// Time to write the last log lines. A server whose standard error is stuck must end, too.
constexpr absl::Duration kLastLines = absl::Seconds(1);
// Time for the libraries to end after all calls have: gRPC waits forever if the system has no thread for it.
constexpr unsigned int kLibrariesEndSeconds = 5;

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "longshort-server: %s\n", status.message());
  return 1;
}

int Print(const std::string& text) { return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : 1; }

// Opens missing standard streams. Otherwise the first connections would get their numbers, and logs would be written
// to them.
void OpenStandardStreams() {
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = open("/dev/null", O_RDWR);
  if (opened > STDERR_FILENO) close(opened);
}

std::string Summary(const core::ServedLanguageModel& model) {
  const models::LanguageModelInfo& info = model.info;
  return absl::StrFormat("language_model, %s, %d parameters, vocabulary of %d, memory %d, fingerprint %s",
                         info.precision, info.parameters, info.vocabulary_size, info.memory_length,
                         info.fingerprint.substr(0, 12));
}

std::string Summary(const core::ServedClassifier& model) {
  const models::ClassifierInfo& info = model.info;
  return absl::StrFormat("%s, %s, %d parameters, %d classes, fingerprint %s", info.architecture, info.precision,
                         info.parameters, info.classes, info.fingerprint.substr(0, 12));
}

// Loads everything as for serving, and prints what would be served.
int CheckConfig(const ServerOptions& options, const MachineLimits& machine, const GuardedLoader& loader, Logger& log) {
  if (const auto port_file = PortFile::Create(options.port_file); !port_file.ok()) return Fail(port_file.status());
  ServerMetrics metrics(options.latency_buckets);
  const auto models =
      LoadModels(options, machine, EngineBudgetsOf(RequestMemoryOf(options, machine)), loader, metrics, log);
  if (!models.ok()) return Fail(models.status());
  std::string text = absl::StrFormat("would serve gRPC on %s and HTTP on %s, with %d threads per step:\n",
                                     options.listen.ToString(), options.http_listen.ToString(), options.threads);
  if (!options.tracing.endpoint.empty()) {
    absl::StrAppendFormat(&text, "with traces %s\n", options.tracing.Summary());
  }
  for (const std::shared_ptr<core::ServedModel>& model : (*models)->List()) {
    absl::StrAppendFormat(&text, "  %s/%d: %s\n", model->name, model->version,
                          std::visit([](const auto& kind) { return Summary(kind); }, model->kind));
  }
  bool serves_all = true;
  const std::set<std::string> skipped = (*models)->skipped();  // the log names them
  for (const auto& [id, failure] : (*models)->failures()) {
    if (skipped.count(std::string(failure.message())) > 0) continue;
    absl::StrAppend(&text, "would not serve ", std::string(failure.message()), "\n");
    serves_all = false;
  }
  const int printed = Print(text);
  return serves_all ? printed : 1;
}

// Aborts loading once a signal has requested a stop: the server never becomes ready then, and loads no further model.
GuardedLoader UnlessStopped(const GuardedLoader& loader, const SignalWatcher& signals) {
  return [&loader, &signals](const std::string& directory, const std::vector<models::WorkerDevice>& workers,
                             const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    absl::Status stopping = absl::CancelledError("stop requested while loading");
    models::LoadGuard until_stopped = guard;
    until_stopped.stop_requested = [&signals] { return signals.stop_requested(); };
    if (signals.stop_requested()) return stopping;
    absl::StatusOr<models::LoadedModel> loaded = loader(directory, workers, until_stopped);
    if (signals.stop_requested()) return stopping;
    return loaded;
  };
}

int Serve(const ServerOptions& options, const MachineLimits& machine, const GuardedLoader& loader, Logger& log,
          SignalWatcher& signals, models::GpuLoss& gpu_loss) {
  // Only a new process can use a lost GPU again.
  std::atomic<bool> is_lost = false;
  const absl::Cleanup deaf = [&gpu_loss] { gpu_loss.SetListener(nullptr); };
  gpu_loss.SetListener([&](const std::string& why) {
    log.Error("GPU lost", {{"error", why}, {"next", std::string("the server stops and must be restarted")}});
    is_lost = true;
    signals.Stop();
  });
  const auto server = Server::Start(options, machine, loader, log);
  if (absl::IsCancelled(server.status())) {
    log.Info("stopped", {{"why", std::string(server.status().message())}});
    return is_lost ? 1 : 0;
  }
  if (!server.ok()) {
    log.Error("cannot start", {{"error", std::string(server.status().message())}});
    return 1;
  }
  signals.WaitForStop();
  (*server)->Drain();
  const int status = is_lost ? 1 : 0;
  signals.ExitAfter(kLibrariesEndSeconds, status);
  return status;
}

int Run(const std::vector<std::string>& arguments, const LoaderFactory& make_loader, const GpusOfBuild& gpus) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return Fail(line.status());
  if (line->help != HelpForm::kNone) return Print(HelpText(line->help));
  if (line->version) return Print(absl::StrFormat("longshort-server %s\n", std::string(kVersion)));

  MachineLimits machine = ReadMachineLimits();
  machine.gpus = gpus.find();
  absl::StatusOr<ServerOptions> options = ValidateServerOptions(line->options, machine);
  if (!options.ok()) return Fail(options.status());
  auto tracing = ReadTracingOptions(options->otlp_endpoint, options->trace_sample_ratio, ProcessEnvironment());
  if (!tracing.ok()) return Fail(tracing.status());
  options->tracing = *std::move(tracing);

  SwitchOffLockOrderChecks();
  LimitTlsMemory();
  RaiseDescriptorLimit();
  SignalWatcher signals;
  if (const absl::Status status = signals.Start(); !status.ok()) return Fail(status);
  // Never destroyed: gRPC's own threads may log until the process exits.
  static Logger& log = *new Logger(options->log_format, options->log_level);
  static const absl::Status log_started = log.Start();  // once, although tests run several servers in one process
  if (!log_started.ok()) return Fail(log_started);
  CaptureLibraryLogs(log);
  log.Info("starts", {{"release", std::string(kVersion)},
                      {"cpus", machine.cpus},
                      {"threads", int64_t{options->threads}},
                      {"memory_limit_bytes", machine.memory_bytes}});
  for (const std::string& variable : RemovedThreadVariables()) {
    log.Log(LogLevel::kWarning, "environment variable ignored",
            {{"why", variable + " would bind or limit the server's threads; --threads sets them"}});
  }
  for (const std::string& warning : options->tracing.warnings) {
    log.Log(LogLevel::kWarning, "environment variable ignored", {{"why", warning}});
  }
  const GuardedLoader make = make_loader(*options);
  const GuardedLoader loader = UnlessStopped(make, signals);
  const int code = options->check_config ? CheckConfig(*options, machine, loader, log)
                                         : Serve(*options, machine, loader, log, signals, *gpus.loss);
  log.Flush(kLastLines);
  return code;
}

}  // namespace

int RunServer(const std::vector<std::string>& arguments, const LoaderFactory& make_loader, const GpusOfBuild& gpus) {
  OpenStandardStreams();
  SwitchOffChunkedReads();
  // Libraries throw if the system has no thread or no memory.
  try {
    return Run(arguments, make_loader, gpus);
  } catch (const std::exception& error) {
    return Fail(absl::ResourceExhaustedError(error.what()));
  }
}

}  // namespace longshort::server
