#include "server/http/http_endpoints.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/http/https_server.h"

namespace longshort {
namespace {

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";
// Each serves one connection; more than probes and scrapers need, so that a few silent ones keep nobody waiting.
constexpr size_t kThreads = 16;
// For each read and write, not for a whole request: a silent client is cut off, one that sends byte by byte keeps its
// thread until the server stops, and there is no limit for a header line. So operators keep this port off untrusted
// networks.
constexpr time_t kPatienceSeconds = 2;
// For the first byte of a request, on a new connection too: sixteen that say nothing keep a probe waiting so long.
constexpr time_t kIdleSeconds = 1;
constexpr size_t kMostBodyBytes = 4096;

// Without SO_REUSEPORT, which is httplib's default: two servers on one port must not go unnoticed.
void SetSocketOptions(socket_t socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

// Ends what is read from and written to the process' sockets of this port: httplib knows those that it serves, but
// tells nobody.
void ShutDownConnections(int port) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int socket = 0;
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (!absl::SimpleAtoi(entry.path().filename().string(), &socket)) continue;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    if (PortOf(address) == port) shutdown(socket, SHUT_RDWR);
  }
}

// Several are joined, and so are no token.
std::optional<std::string> AuthorizationOf(const httplib::Request& request) {
  std::optional<std::string> all;
  const auto [first, last] = request.headers.equal_range("Authorization");
  for (auto value = first; value != last; ++value) {
    all = all.has_value() ? absl::StrCat(*all, ",", value->second) : value->second;
  }
  return all;
}

void Refuse(const absl::Status& status, httplib::Response& response) {
  const bool unknown = absl::IsUnauthenticated(status);
  response.status = unknown ? 401 : 403;
  if (unknown) response.set_header("WWW-Authenticate", "Bearer");
  response.set_content(absl::StrCat(std::string(status.message()), "\n"), kPlain);
}

}  // namespace

HttpEndpoints::HttpEndpoints(std::function<std::string()> metrics, MayReadMetrics may_read_metrics, const TlsWatch* tls)
    : server_(MakeHttpServer(tls)) {
  server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server_->set_socket_options(SetSocketOptions);
  server_->set_read_timeout(kPatienceSeconds);
  server_->set_write_timeout(kPatienceSeconds);
  server_->set_keep_alive_timeout(kIdleSeconds);
  server_->set_payload_max_length(kMostBodyBytes);

  server_->Get("/metrics", [metrics = std::move(metrics), may_read = std::move(may_read_metrics)](
                               const httplib::Request& request, httplib::Response& response) {
    if (may_read != nullptr) {
      if (const absl::Status status = may_read(AuthorizationOf(request)); !status.ok()) return Refuse(status, response);
    }
    response.set_content(metrics(), kPrometheusText);
  });
  server_->Get("/livez",
               [](const httplib::Request&, httplib::Response& response) { response.set_content("ok\n", kPlain); });
  server_->Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const bool ready = ready_;
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ready\n" : "not ready\n", kPlain);
  });
}

absl::StatusOr<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Start(const ListenAddress& address,
                                                                    std::function<std::string()> metrics,
                                                                    MayReadMetrics may_read_metrics,
                                                                    const TlsWatch* tls) {
  auto endpoints =
      std::unique_ptr<HttpEndpoints>(new HttpEndpoints(std::move(metrics), std::move(may_read_metrics), tls));
  httplib::Server& server = *endpoints->server_;
  if (!server.is_valid()) return absl::UnavailableError("HTTP cannot speak TLS: OpenSSL has no memory for it");
  const bool any = address.port == 0;
  const int bound = any ? server.bind_to_any_port(address.host) : address.port;
  if (bound <= 0 || (!any && !server.bind_to_port(address.host, address.port))) {
    return absl::UnavailableError(absl::StrCat("--http-listen=", address.ToString(),
                                               " cannot be bound: in use, or not an address of this machine"));
  }
  endpoints->port_ = bound;
  endpoints->thread_ = std::thread([&server, &ended = endpoints->ended_] {
    server.listen_after_bind();
    ended.Notify();
  });
  return endpoints;
}

HttpEndpoints::~HttpEndpoints() {
  if (!thread_.joinable()) return;
  // stop() does nothing before the thread has come to listen.
  while (!server_->is_running() && !ended_.HasBeenNotified()) std::this_thread::yield();
  server_->stop();
  if (!ended_.WaitForNotificationWithTimeout(absl::Seconds(kPatienceSeconds))) ShutDownConnections(port_);
  thread_.join();
}

}  // namespace longshort
