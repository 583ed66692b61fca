#include "server/lifecycle/server.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/random_number.h"
#include "base/status_macros.h"
#include "core/schedule/fair_pool.h"
#include "server/access/access_table.h"
#include "server/access/session_seal.h"
#include "server/call/call_memory.h"
#include "server/fronts/json/connect_codec.h"
#include "server/fronts/json/openapi.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/lifecycle/port_file.h"
#include "server/model_control/load_models.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"

namespace longshort::server {
namespace {

// The engines end late calls at the drain's deadline. This is the time to send their last messages.
constexpr absl::Duration kLastMessages = absl::Seconds(1);

// Limits of the time to export the last traces.
constexpr absl::Duration kMinForTraces = absl::Seconds(1);
constexpr absl::Duration kMaxForTraces = absl::Seconds(3);

// The last part of the drain, in which no call begins and a ScoreTexts stream reads no further documents, so that
// documents in flight can be answered.
absl::Duration LastPart(absl::Duration drain_timeout) { return std::min(drain_timeout / 10, absl::Seconds(2)); }

RequestLimits LimitsOf(const ServerOptions& options) {
  RequestLimits limits;
  limits.prompt_tokens = options.max_prompt_tokens;
  limits.generate_tokens = options.max_generate_tokens;
  limits.message_bytes = options.max_message_bytes;
  limits.inputs = options.max_inputs;
  const models::ImageLimits image = ServedImageLimits(options);
  limits.image_bytes = image.max_bytes;
  limits.image_pixels = image.max_pixels;
  return limits;
}

absl::StatusOr<SessionTransfers> TransfersOf(const ServerOptions& options, const CallMemory& memory) {
  SessionTransfers transfers;
  if (options.session_key_file.empty()) return transfers;
  LS_ASSIGN_OR_RETURN(transfers.key, ReadSessionKey(options.session_key_file));
  transfers.budget = memory.transfers();
  transfers.server = absl::StrFormat("%016x", RandomNumber());
  return transfers;
}

// nullptr without --token-file.
absl::StatusOr<std::unique_ptr<AccessControl>> OpenAccess(const ServerOptions& options, ServerMetrics& metrics,
                                                          Logger& log) {
  if (options.token_file.empty()) return nullptr;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<AccessControl> access,
                      AccessControl::Open({.token_file = options.token_file, .protect_health = options.protect_health},
                                          [&metrics, &log](const absl::Status& status) {
                                            if (status.ok())
                                              return log.Info("the token file has changed and is in use");
                                            metrics.CountTokenFileFailure();
                                            log.Error(
                                                "the new token file is invalid; the previous contents stay in use",
                                                {{"error", std::string(status.message())}});
                                          }));
  if (access->uses_certificates() && options.tls.client_ca.empty()) {
    log.Log(LogLevel::kWarning, "the token file names certificates, but without --tls-client-ca clients present none");
  }
  return access;
}

// The threads that read large messages and encode large answers. A client may have two seconds of work in the queue,
// and leaves a thread to the others.
absl::StatusOr<std::shared_ptr<core::FairPool>> MakeWorkPool(const MachineLimits& machine) {
  constexpr int64_t kMinThreads = 2, kCpusOfThread = 4, kMaxQueued = 1024, kMaxQueuedOfClient = 256;
  constexpr absl::Duration kMaxTime = absl::Seconds(10), kMaxTimeOfClient = absl::Seconds(2);
  const int64_t threads = std::max(kMinThreads, machine.cpus / kCpusOfThread);
  return core::FairPool::Create(threads,
                                {.max_queued = kMaxQueued,
                                 .max_queued_cost = kMaxTime,
                                 .max_queued_per_client = kMaxQueuedOfClient,
                                 .max_queued_cost_per_client = kMaxTimeOfClient},
                                threads - 1);
}

HttpLimits HttpLimitsOf(const ServerOptions& options, const MachineLimits& machine, ServerMetrics& metrics,
                        const CallMemory& memory, Logger& log) {
  HttpLimits limits;
  limits.connections = static_cast<size_t>(HttpConnectionsOf(options, machine).number);
  // The call's own limit ends a call whose client does not read, and counts it. This is the connection's, after that.
  limits.answer = std::max(limits.answer, options.slow_reader_timeout + absl::Seconds(2));
  limits.idle = options.http_idle_timeout;
  const ConnectionLimit allowed = HttpConnectionsOf(options, machine);
  limits.on_connections = [&metrics, bytes_of_one = allowed.bytes / allowed.number,
                           held = std::make_shared<Budget::Share>(memory.connections())](size_t connections) {
    metrics.SetOpenHttpConnections(connections);
    held->SetAmount(static_cast<int64_t>(connections) * bytes_of_one);
  };
  limits.on_failure = [&metrics, &log](const std::string& what) {
    metrics.CountClosedConnection("failure");
    log.Error("connection of HTTP closed: the server failed to serve it; please report this",
              {{"error", std::string(what)}});
  };
  return limits;
}

HttpEndpoints::MayReadMetrics MetricsAccess(const AccessControl* access) {
  if (access == nullptr) return nullptr;
  return [access](std::optional<std::string> authorization) {
    constexpr RpcAccess kNeeded = {.scope = Scope::kObserve};
    const absl::Time now = MonotonicNow();
    const absl::StatusOr<Caller> caller = access->Identify({.authorization = std::move(authorization)}, kNeeded, now);
    return caller.ok() ? AccessControl::Admit(*caller, "/metrics", kNeeded, now) : caller.status();
  };
}

// As CallRecord::Admit says. Connections of a Unix socket have no address.
HttpEndpoints::ClientOf ClientsByHttp(const AccessControl* access, bool trusts_client_ids) {
  return [access, trusts_client_ids](HttpRequest& head) {
    if (access != nullptr) {
      Credentials credentials{.authorization = head.Find("authorization")};
      if (!credentials.authorization.has_value()) credentials = head.certificate;
      const absl::StatusOr<Caller> caller = access->Identify(credentials, {}, MonotonicNow());
      if (caller.ok() && caller->identity() != nullptr) {
        head.grant = caller->grant();
        return caller->identity()->name();
      }
    } else if (trusts_client_ids) {
      if (std::optional<std::string> id = head.Find("x-client-id"); id.has_value()) return *std::move(id);
    }
    return absl::StartsWith(head.peer, "unix:") ? std::string() : ClientAddress(head.peer);
  };
}

}  // namespace

Server::Server(const ServerOptions& options, Logger& log)
    : options_(options), log_(log), metrics_(options.latency_buckets) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, const MachineLimits& machine,
                                                      const GuardedLoader& loader, Logger& log) {
  auto server = std::unique_ptr<Server>(new Server(options, log));
  ServerMetrics& metrics = server->metrics_;
  metrics.SetLimits(machine.memory_bytes, machine.cpus, options.threads);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<PortFile> port_file, PortFile::Create(options.port_file));
  LS_ASSIGN_OR_RETURN(server->tls_, WatchTlsFiles(options.tls, metrics, log));
  LS_ASSIGN_OR_RETURN(server->access_, OpenAccess(options, metrics, log));
  server->memory_ =
      std::make_unique<CallMemory>(RequestMemoryOf(options, machine), options.slow_reader_timeout, metrics.families());
  LS_RETURN_IF_ERROR(server->memory_->Start());
  log.ChargeTo(server->memory_->log());
  LS_ASSIGN_OR_RETURN(server->http_, HttpEndpoints::Start(
                                         {.address = options.http_listen,
                                          .socket_mode = options.listen_mode,
                                          .metrics = [&metrics] { return metrics.Serialize(); },
                                          .may_read_metrics = MetricsAccess(server->access_.get()),
                                          .client_of = ClientsByHttp(server->access_.get(), options.trust_client_id),
                                          .models_not_loaded = [&metrics] { return metrics.models_not_loaded(); },
                                          .tls = server->tls_ == nullptr ? nullptr : server->tls_->watch.get(),
                                          .grpc = options.listen.ToString(),
                                          .cors_origin = options.http_cors_origin,
                                          .checks_host = options.token_file.empty() && !options.http_listen.is_unix() &&
                                                         CheckIsLoopback("http-listen", options.http_listen).ok(),
                                          .hosts = options.http_hosts,
                                          .inference = options.http_inference,
                                          .page = options.http_page,
                                          .limits = HttpLimitsOf(options, machine, metrics, *server->memory_, log)}));
  const ListenAddress& http = server->http_->address();
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ConnectionListener> listener,
                      ConnectionListener::Bind(options.listen, options.listen_mode,
                                               http.is_unix() ? "a Unix socket" : absl::StrCat("port ", http.port)));
  LS_ASSIGN_OR_RETURN(server->models_, LoadModels(options, machine, server->memory_->engines(), loader, metrics, log));
  server->manager_ = std::make_unique<ModelManager>(*server->models_, metrics, log);
  server->deliveries_ = std::make_unique<DeliveryThreads>(machine.cpus);
  LS_RETURN_IF_ERROR(server->deliveries_->Start());
  LS_ASSIGN_OR_RETURN(SessionTransfers transfers, TransfersOf(options, *server->memory_));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<core::FairPool> work, MakeWorkPool(machine));
  if (options.report_load) {
    server->load_report_ = std::make_unique<LoadReport>(
        metrics.families(), LoadReport::Capacity{.cpus = machine.cpus, .memory_bytes = machine.memory_bytes});
  }
  if (!options.tracing.endpoint.empty()) {
    server->tracing_ = std::make_unique<Tracing>(options.tracing, server->memory_->traces(), metrics, log);
    LS_RETURN_IF_ERROR(server->tracing_->Start());
    log.Info("calls are traced", {{"spans", options.tracing.Summary()}});
  }
  server->environment_ = std::unique_ptr<CallEnvironment>(
      new CallEnvironment{.models = *server->models_,
                          .manager = *server->manager_,
                          .metrics = metrics,
                          .log = log,
                          .gate = server->gate_,
                          .deliveries = *server->deliveries_,
                          .limits = LimitsOf(options),
                          .keepalive_interval = options.keepalive_interval,
                          .slow_reader_timeout = options.slow_reader_timeout,
                          .log_requests = options.log_requests,
                          .model_control = options.model_control,
                          .session_transfers = std::move(transfers),
                          .message_memory = server->memory_->messages(),
                          .probe_memory = server->memory_->probes(),
                          .answers = server->memory_->answers(),
                          .connection_memory = server->memory_->connections(),
                          .access = server->access_.get(),
                          .trusts_client_ids = options.trust_client_id,
                          .load_report = server->load_report_.get(),
                          .tracer = server->tracing_ == nullptr ? nullptr : &server->tracing_->tracer(),
                          .work = std::move(work)});
  LS_ASSIGN_OR_RETURN(server->grpc_, GrpcEndpoint::Start(options, machine, *server->environment_, std::move(listener),
                                                         server->tls_.get()));
  LS_RETURN_IF_ERROR(server->manager_->Start(
      options.watch_repository,
      [&grpc = *server->grpc_](const core::RegistryEvent& event) { grpc.AnnounceModel(event.model, event.version); }));
  const HttpDescription descriptions[] = {ConnectDescription(server->http_rpcs_), OpenInferenceDescription(),
                                          OpenAiDescription(), PortDescription()};
  server->http_->Serve({ConnectFront(*server->environment_, server->http_rpcs_),
                        OpenInferenceFront(*server->environment_, server->open_inference_rpcs_),
                        OpenAiFront(*server->environment_),
                        OpenApiFront(OpenApiDocument(descriptions, server->access_ != nullptr))});
  LS_RETURN_IF_ERROR(port_file->Write(server->grpc_->address().port, server->http_->address().port));
  server->http_->SetReady(true);
  log.Info("ready", {{"grpc", server->grpc_->address().ToString()}, {"http", server->http_->address().ToString()}});
  return server;
}

Server::~Server() {
  if (http_ != nullptr) http_->Close();       // its calls use what is destroyed before it
  if (manager_ != nullptr) manager_->Join();  // it notifies grpc_, which is destroyed before it
}

void Server::Drain() {
  http_->SetReady(false);
  grpc_->StopServing();
  log_.Info("draining", {{"delay", absl::FormatDuration(options_.drain_delay)},
                         {"timeout", absl::FormatDuration(options_.drain_timeout)}});
  gate_.BeginStop();
  manager_->Stop();
  absl::SleepFor(options_.drain_delay);
  const absl::Time deadline = MonotonicNow() + options_.drain_timeout;
  grpc_->DrainConnections(deadline - LastPart(options_.drain_timeout));
  gate_.Close();
  models_->Drain(deadline);
  manager_->Join();  // last: a model that is loading may take longer than the calls
  const int64_t cut_off = gate_.WaitUntilEmpty(std::max(deadline, MonotonicNow() + kLastMessages));
  log_.Info("drained", {{"calls_cut_off", cut_off}});
  if (tracing_ != nullptr) {
    tracing_->Shutdown(std::clamp(deadline - MonotonicNow(), kMinForTraces, kMaxForTraces));
  }
}

}  // namespace longshort::server
