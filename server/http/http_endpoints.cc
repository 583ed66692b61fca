#include "server/http/http_endpoints.h"

#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";
// Each serves one connection; more than probes and scrapers need, so that a few silent ones keep nobody waiting.
constexpr size_t kThreads = 16;
// For each read and write, not for a whole request: a silent client is cut off, one that sends byte by byte keeps its
// thread, and there is no limit for a header line. So operators keep this port off untrusted networks.
constexpr time_t kPatienceSeconds = 2;
constexpr size_t kMostBodyBytes = 4096;

// Without SO_REUSEPORT, which is httplib's default: two servers on one port must not go unnoticed.
void SetSocketOptions(socket_t socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

}  // namespace

HttpEndpoints::HttpEndpoints(std::function<std::string()> metrics) : server_(std::make_unique<httplib::Server>()) {
  server_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server_->set_socket_options(SetSocketOptions);
  server_->set_read_timeout(kPatienceSeconds);
  server_->set_write_timeout(kPatienceSeconds);
  server_->set_keep_alive_timeout(kPatienceSeconds);
  server_->set_payload_max_length(kMostBodyBytes);

  server_->Get("/metrics", [metrics = std::move(metrics)](const httplib::Request&, httplib::Response& response) {
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
                                                                    std::function<std::string()> metrics) {
  auto endpoints = std::unique_ptr<HttpEndpoints>(new HttpEndpoints(std::move(metrics)));
  httplib::Server& server = *endpoints->server_;
  const bool any = address.port == 0;
  const int bound = any ? server.bind_to_any_port(address.host) : address.port;
  if (bound <= 0 || (!any && !server.bind_to_port(address.host, address.port))) {
    return absl::UnavailableError(absl::StrCat("--http-listen=", address.ToString(),
                                               " cannot be bound: in use, or not an address of this machine"));
  }
  endpoints->port_ = bound;
  endpoints->thread_ = std::thread([&server, &ended = endpoints->ended_] {
    server.listen_after_bind();
    ended = true;
  });
  return endpoints;
}

HttpEndpoints::~HttpEndpoints() {
  if (!thread_.joinable()) return;
  // stop() does nothing before the thread has come to listen.
  while (!server_->is_running() && !ended_) std::this_thread::yield();
  server_->stop();
  thread_.join();
}

}  // namespace longshort
