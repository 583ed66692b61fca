#include "server/lifecycle/grpc_endpoint.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/options/server_options.h"
#include "server/transports/grpc_1_51/grpc_workarounds.h"

namespace longshort::server {
namespace {

constexpr int kMillisecondsPerSecond = 1000;
constexpr int kPingTimeoutSeconds = 20;
// Time for a new connection's handshakes, TLS and HTTP/2. A silent client holds a descriptor no longer.
constexpr int kHandshakeSeconds = 10;
constexpr int kMaxCallsPerConnection = 1024;
// Limit of a call's headers. Clients' metadata have some hundred bytes, tokens a few thousand.
constexpr int kMaxMetadataBytes = 16 << 10;
// What an idle connection keeps for its next read; gRPC adds a header. A connection that sends more is read in larger
// parts.
constexpr int kFirstReadBytes = (2 << 10) - 64;
// Limit of one read. gRPC processes a read completely before it closes a connection.
constexpr int kMaxReadAtOnceBytes = 64 << 10;
// Poll interval while clients disconnect.
constexpr absl::Duration kDrainPollInterval = absl::Milliseconds(5);
// A client without an open call may have sent one before it reads the GOAWAY. After so many polls without calls, a
// second or more, the remaining clients only watch the server's health, or are gone. A busy machine delays the polls as
// it delays the clients, so polls are a better measure than time.
constexpr int kQuietPolls = 200;
// Half a second or more for clients to close their connections once the server accepts no calls.
constexpr int kGoodbyePolls = 100;
// A connection in its handshake gets no GOAWAY, so it is sent again, at intervals that grow up to this.
constexpr absl::Duration kLongestPause = absl::Seconds(1);

int Milliseconds(absl::Duration duration) { return static_cast<int>(absl::ToInt64Milliseconds(duration)); }

// gRPC limits neither bytes without a message, nor calls of a client that does not acknowledge the server's settings.
AbuseLimits LimitsOfConnections(const ServerOptions& options, const MachineLimits& machine) {
  AbuseLimits limits;
  // Twice as many may have ended and not be destroyed yet: those of a client whose calls all pass their deadlines. A
  // call takes some 25 KB, so this bounds the memory.
  limits.calls = 3 * kMaxCallsPerConnection;
  const ConnectionLimit connections = GrpcConnectionsOf(options, machine);
  limits.connections = connections.number;
  limits.connection_bytes = connections.bytes / connections.number;
  limits.message_bytes = options.max_message_bytes;
  limits.messages_bytes = MessageBufferBytes(options, machine);
  limits.all_idle_bytes = limits.messages_bytes - limits.messages_bytes / 4;
  constexpr int64_t kBytesOfCallNotBegun = 32 << 10;
  limits.calls_not_begun = limits.messages_bytes / 2 / kBytesOfCallNotBegun;
  constexpr int64_t kRefusedCallsOfCpu = 2048;  // a tenth of its time
  limits.refused_calls = kRefusedCallsOfCpu * machine.cpus;
  limits.longest_pause = absl::Seconds(kPingTimeoutSeconds) * 3 / 4;
  return limits;
}

void SetChannelArguments(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeSeconds * kMillisecondsPerSecond);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.ping_interval));
  // gRPC would send two pings without data, and then none while a call is silent.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutSeconds * kMillisecondsPerSecond);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // No limit. gRPC would close the connection after its current write, and until then allocate 5 KB for each further
  // ping: more than a gigabyte for a client that does not read. The ConnectionGuard closes connections that only ping.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadAtOnceBytes);
  // A window stays as large as the guard knows it (AbuseLimits::silent_bytes): 1 MiB for each incomplete message.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);  // for the ConnectionGuard
  if (options.max_connection_age != absl::ZeroDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options.max_connection_age));
  }
  if (options.max_connection_age_grace != absl::ZeroDuration()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(options.max_connection_age_grace));
  }
  // gRPC would decompress a message before it checks the limit, and zeros can grow a thousandfold. The server does it
  // (ParseMessage).
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

std::vector<Rpc> AllRpcs(Health& health, Reflection& reflection) {
  std::vector<Rpc> all;
  for (std::vector<Rpc>& rpcs : std::vector<std::vector<Rpc>>{LongshortV1Rpcs(), OpenInferenceRpcs(),
                                                              HealthRpcs(health), ReflectionRpcs(reflection)}) {
    std::move(rpcs.begin(), rpcs.end(), std::back_inserter(all));
  }
  for (const Rpc& rpc : all) {
    const std::string service(ServiceOf(rpc));
    if (reflection.services.empty() || reflection.services.back() != service) reflection.services.push_back(service);
  }
  return all;
}

}  // namespace

GrpcEndpoint::GrpcEndpoint(const CallEnvironment& environment, const AbuseLimits& limits,
                           std::unique_ptr<ConnectionListener> listener)
    : environment_(environment),
      address_(listener->address()),
      service_(environment, AllRpcs(health_, reflection_)),
      listener_(std::move(listener)),
      guard_(limits, GuardHandlers(limits.connection_bytes)) {}

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Start(const ServerOptions& options,
                                                                  const MachineLimits& machine,
                                                                  const CallEnvironment& environment,
                                                                  std::unique_ptr<ConnectionListener> listener,
                                                                  const ServerTls* tls) {
  auto endpoint = std::unique_ptr<GrpcEndpoint>(
      new GrpcEndpoint(environment, LimitsOfConnections(options, machine), std::move(listener)));
  grpc::ServerBuilder builder;
  endpoint->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      MakeServerCredentials(tls, environment.log));
  endpoint->service_.AddTo(builder);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  SetChannelArguments(options, builder);
  // A client whose TLS handshake fails finds the reason only if gRPC has read all that it sent: closing a socket with
  // unread bytes resets it.
  if (tls == nullptr) builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kFirstReadBytes);
  // At its quota, gRPC first closes connections without calls, which are other clients'. So the guard acts at a part of
  // the quota, and the rest is for what arrives while the guard's thread waits for a processor.
  grpc::ResourceQuota quota("longshort");
  quota.Resize(static_cast<size_t>(2 * MessageBufferBytes(options, machine)));
  builder.SetResourceQuota(quota);

  endpoint->server_ = builder.BuildAndStart();
  if (endpoint->server_ == nullptr) return absl::InternalError("gRPC failed to start");
  endpoint->AnnounceServing();
  LS_RETURN_IF_ERROR(endpoint->StartListening());
  return endpoint;
}

ConnectionGuard::Handlers GrpcEndpoint::GuardHandlers(int64_t bytes_of_connection) {
  auto held = std::make_shared<Budget::Share>(environment_.connection_memory);
  ConnectionCounts& counts = service_.counts();
  return {.begun = [&counts] { return counts.begun(); },
          .begun_by = [&counts](const std::string& peer) -> int64_t { return counts.Of(peer).begun; },
          .refused = [&counts] { return counts.refused(); },
          .take_refused_of = [&counts](const std::string& peer) { return counts.TakeRefused(peer); },
          .open =
              [this, bytes_of_connection, held](int64_t connections) {
                environment_.metrics.SetOpenConnections(connections);
                held->SetAmount(connections * bytes_of_connection);
              },
          .ended =
              [this](const std::vector<ConnectionGuard::Ended>& connections) {
                for (const ConnectionGuard::Ended& ended : connections) {
                  environment_.metrics.CountClosedConnection(AbuseKindName(ended.why));
                }
                const ConnectionGuard::Ended& first = connections.front();
                environment_.log.Error(
                    "connections closed: their clients abuse HTTP/2, others need room, or too many of an abusive "
                    "address wait",
                    {{"connections", static_cast<int64_t>(connections.size())},
                     {"first", first.peer},
                     {"why", std::string(AbuseKindName(first.why))},
                     {"received_bytes", first.received_bytes},
                     {"bytes_since_last_message", first.idle_bytes},
                     {"calls_in_memory", first.open_calls}});
              }};
}

absl::Status GrpcEndpoint::StartListening() {
  LS_RETURN_IF_ERROR(guard_.Start());
  return listener_->Start(
      {.admitted = [this](int socket) { return guard_.Admit(socket); },
       .accepted =
           [this](int socket) {
             guard_.Watch(socket);
             grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
             connection.fd = socket;
             acceptor_->HandleNewConnection(&connection);
           },
       .refused =
           [this](int64_t connections) {
             environment_.metrics.CountRefusedConnections(connections);
             environment_.log.Error(
                 "connections refused: the process is out of file descriptors, or too many of abusive addresses wait",
                 {{"connections", connections}, {"next", "raise ulimit -Hn"}});
           }});
}

void GrpcEndpoint::AnnounceServing() {
  HealthRegistry& health = health_.registry;
  health.Set("", true);
  for (const std::string& service : reflection_.services) {
    if (!absl::StartsWith(service, "grpc.")) health.Set(service, true);
  }
  for (const std::shared_ptr<core::ServedModel>& model : environment_.models.List()) {
    AnnounceModel(model->name, model->version);
  }
}

void GrpcEndpoint::AnnounceModel(const std::string& model, int64_t version) {
  HealthRegistry& health = health_.registry;
  health.Set(model, environment_.models.Find(model, 0).ok());
  health.Set(absl::StrCat(model, "/", version), environment_.models.Find(model, version).ok());
}

void GrpcEndpoint::StopServing() { health_.registry.StopServing(); }

void GrpcEndpoint::DrainConnections(absl::Time deadline) {
  listener_.reset();
  CallGate::Traffic seen = environment_.gate.traffic();
  absl::Time next_goaway = absl::InfinitePast();
  absl::Duration pause = kDrainPollInterval;
  for (int quiet = 0;; ++quiet, absl::SleepFor(kDrainPollInterval)) {
    const absl::Time now = MonotonicNow();
    if (now >= next_goaway) {
      SendGoaways(*server_);
      next_goaway = now + pause;
      pause = std::min(2 * pause, kLongestPause);
    }
    const CallGate::Traffic traffic = environment_.gate.traffic();
    const bool busy = traffic.inside > traffic.idle;
    if (busy || traffic.begun > seen.begun) quiet = 0;
    seen = traffic;
    if (now >= deadline || (!busy && (quiet >= kQuietPolls || CountConnections(address_) == 0))) return;
  }
}

GrpcEndpoint::~GrpcEndpoint() {
  if (server_ == nullptr) return;
  listener_.reset();
  // While connections are open, calls may arrive, which the closed gate refuses. gRPC's shutdown would cancel them.
  for (int polls = 0; polls < kGoodbyePolls && CountConnections(address_) > 0; ++polls) {
    SendGoaways(*server_);
    absl::SleepFor(kDrainPollInterval);
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace longshort::server
