#include "server/http/http_server.h"

#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/http/http_connection.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using StreamProtocol = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<StreamProtocol>;
using boost::system::error_code;

// Interval for retrying accept while there is no descriptor for a connection.
constexpr std::chrono::milliseconds kAcceptAgain(100);
// For large requests, so that one of them does not keep the others from being processed.
constexpr size_t kWorkers = 2;
// While exchanges end.
constexpr absl::Duration kPollInterval = absl::Milliseconds(1);

}  // namespace

// Everything that runs in the server's threads.
class HttpServer::Loop final {
 public:
  Loop(HttpRouter router, ssl_ctx_st* tls, const HttpLimits& limits) : router_(std::move(router)), limits_(limits) {
    if (tls == nullptr) return;
    SSL_CTX_up_ref(tls);
    tls_.emplace(tls);  // takes a reference
  }

  void Listen(ListeningSockets listening) {
    file_ = std::move(listening.file);
    for (Descriptor& socket : listening.sockets) {
      sockaddr_storage address{};
      socklen_t length = sizeof(address);
      getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length);
      const StreamProtocol protocol(address.ss_family, 0);
      asio::co_spawn(context_, AcceptFrom(Acceptor(context_, protocol, socket.Release())), asio::detached);
    }
  }
  void Run() { context_.run(); }
  // Closes all connections and waits until no exchange is in use. Thread-safe.
  // REQUIRES: another thread is in Run.
  void Close() {
    absl::Notification closed;
    asio::post(context_, [this, &closed] {
      closed_ = true;
      while (!shared_.all.empty()) (*shared_.all.begin())->Close();
      closed.Notify();
    });
    closed.WaitForNotification();
    while (shared_.exchanges > 0) absl::SleepFor(kPollInterval);
  }
  // Thread-safe.
  void Stop() {
    context_.stop();
    workers_.join();
  }

 private:
  awaitable<void> AcceptFrom(Acceptor acceptor) {
    asio::steady_timer timer(context_);
    while (true) {
      error_code error;
      HttpSocket socket = co_await acceptor.async_accept(redirect_error(use_awaitable, error));
      const bool no_descriptor = IsOutOfDescriptors(error.value());
      if (no_descriptor || shared_.all.size() >= limits_.connections) {
        if (!shared_.evictable.empty()) {
          shared_.evictable.front()->Close();
        } else if (no_descriptor) {
          timer.expires_after(kAcceptAgain);
          co_await timer.async_wait(use_awaitable);
        } else {
          continue;  // every connection is being served: the new one is closed
        }
      }
      if (error || closed_) continue;
      const auto connection =
          std::make_shared<HttpConnection>(std::move(socket), tls_.has_value() ? &*tls_ : nullptr, shared_);
      asio::co_spawn(
          context_, [connection] { return connection->Serve(); }, asio::detached);
    }
  }

  const HttpRouter router_;
  const HttpLimits limits_;
  std::unique_ptr<SocketFile> file_;  // of a Unix socket
  std::optional<asio::ssl::context> tls_;
  asio::thread_pool workers_{kWorkers};
  HttpConnection::Shared shared_{router_, limits_, workers_};
  bool closed_ = false;
  asio::io_context context_{1};  // last: it owns the coroutines, and with them the connections
};

HttpServer::HttpServer(int port, std::unique_ptr<Loop> loop) : port_(port), loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const NamedAddress& name, HttpRouter router,
                                                              ssl_ctx_st* tls, const HttpLimits& limits,
                                                              int64_t socket_mode) {
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name, socket_mode));
  LS_RETURN_IF_ERROR(Listen(name, listening));
  const int port = listening.port;
  try {
    auto loop = std::make_unique<Loop>(std::move(router), tls, limits);
    loop->Listen(std::move(listening));
    std::unique_ptr<HttpServer> server(new HttpServer(port, std::move(loop)));
    LS_RETURN_IF_ERROR(server->thread_.Start("the thread of HTTP", [&loop = *server->loop_] { loop.Run(); }));
    return server;
  } catch (const boost::system::system_error& error) {  // no descriptor for Asio's own use, or no thread
    return CannotBind(name, error.what());
  }
}

void HttpServer::Close() { loop_->Close(); }

HttpServer::~HttpServer() {
  if (thread_.started()) Close();
  loop_->Stop();
  thread_.Join();
}

}  // namespace longshort::server
