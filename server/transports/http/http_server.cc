#include "server/transports/http/http_server.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/transports/http/client_turns.h"
#include "server/transports/http/http_connection.h"

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
// What the system holds for a connection before it is read, which connections inherit. By default it becomes megabytes
// after a large body, and is in no account.
constexpr int kReceiveBuffer = 256 << 10;
constexpr int kAcceptedAtOnce = 64;
// While exchanges end.
constexpr absl::Duration kPollInterval = absl::Milliseconds(1);

}  // namespace

// Everything that runs in the server's threads.
class HttpServer::Loop final {
 public:
  // `handshakes`: null without TLS.
  Loop(HttpRouter router, ssl_ctx_st* tls, const HttpLimits& limits, std::shared_ptr<core::FairPool> handshakes)
      : router_(std::move(router)), limits_(limits), handshakes_(std::move(handshakes)) {
    if (tls != nullptr) SSL_CTX_up_ref(tls);
    tls_.reset(tls);
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
  void Stop() { context_.stop(); }
  // Returns when no other thread uses the connections. REQUIRES: no thread is in Run.
  void EndHandshakes() { handshakes_.reset(); }

 private:
  awaitable<void> AcceptFrom(Acceptor acceptor) {
    acceptor.non_blocking(true);
    asio::steady_timer timer(context_);
    while (true) {
      error_code error;
      HttpSocket socket = co_await acceptor.async_accept(redirect_error(use_awaitable, error));
      // Those that came together are accepted together, so that their clients take turns.
      for (int accepted = 1; !error; ++accepted) {
        Admit(std::move(socket));
        if (accepted == kAcceptedAtOnce) break;
        socket = acceptor.accept(error);
      }
      if (!IsOutOfDescriptors(error.value())) continue;
      if (HttpConnection* const victim = shared_.Victim(""); victim != nullptr) {
        victim->Close();
      } else {
        timer.expires_after(kAcceptAgain);
        co_await timer.async_wait(use_awaitable);
      }
    }
  }

  void Admit(HttpSocket socket) {
    if (closed_) return;
    // Connections that closed meanwhile have tasks there, too.
    if (handshakes_ != nullptr && handshakes_->size() >= static_cast<int64_t>(limits_.connections)) return;
    if (shared_.all.size() >= limits_.connections) {
      HttpConnection* const victim = shared_.Victim(HttpConnection::AddressOf(socket));
      if (victim == nullptr) return;  // the new one is closed
      victim->Close();
    }
    try {
      std::make_shared<HttpConnection>(std::move(socket), tls_.get(), shared_)->Start();
    } catch (const boost::system::system_error&) {
      return;  // OpenSSL has no memory: the connection is closed
    }
  }

  const HttpRouter router_;
  const HttpLimits limits_;
  std::unique_ptr<SocketFile> file_;  // of a Unix socket
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_{nullptr, SSL_CTX_free};
  std::shared_ptr<core::FairPool> handshakes_;
  HttpConnection::Shared shared_{router_, limits_, handshakes_.get(), turns_};
  bool closed_ = false;
  asio::io_context context_{1};  // it and turns_ own the coroutines, and with them the connections, so they are last
  ClientTurns turns_{context_};
};

HttpServer::HttpServer(int port, std::unique_ptr<Loop> loop) : port_(port), loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const NamedAddress& name, HttpRouter router,
                                                              ssl_ctx_st* tls, const HttpLimits& limits,
                                                              int64_t socket_mode) {
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name, socket_mode));
  for (const Descriptor& socket : listening.sockets) {
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
  }
  LS_RETURN_IF_ERROR(Listen(name, listening));
  const int port = listening.port;
  try {
    std::shared_ptr<core::FairPool> handshakes;
    if (tls != nullptr) {
      LS_ASSIGN_OR_RETURN(handshakes, core::FairPool::Create(1));
    }
    auto loop = std::make_unique<Loop>(std::move(router), tls, limits, std::move(handshakes));
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
  loop_->EndHandshakes();
}

}  // namespace longshort::server
