#include "server/http/http_server.h"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <limits>
#include <list>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

// Interval for retrying accept while the process has no descriptor for a connection.
constexpr std::chrono::milliseconds kAcceptAgain(100);
// Lingering close: a client may still be sending when it gets its last answer. If the connection closed at once, the
// system would reset it and the client would lose the answer.
constexpr absl::Duration kLinger = absl::Seconds(1);

std::string ReasonOf(int status) {
  return std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status))));
}

HttpResponse ErrorResponse(int status) { return {.status = status, .body = ReasonOf(status) + "\n"}; }

std::string Serialize(const HttpResponse& response, bool with_body, bool keep_alive) {
  std::string text = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", ReasonOf(response.status), "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(), "\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.fields) absl::StrAppend(&text, name, ": ", value, "\r\n");
  absl::StrAppend(&text, "\r\n", with_body ? response.body : std::string());
  return text;
}

using Parser = http::request_parser<http::empty_body>;

HttpRequest ToHttpRequest(const Parser::value_type& parsed) {
  HttpRequest request;
  request.method = std::string(parsed.method_string());
  request.path = std::string(parsed.target().substr(0, parsed.target().find('?')));
  const auto [first, last] = parsed.equal_range(http::field::authorization);
  for (auto field = first; field != last; ++field) {
    const std::string value(field->value());
    request.authorization =
        request.authorization.has_value() ? absl::StrCat(*request.authorization, ",", value) : value;
  }
  return request;
}

// The connection of one client. It is in `all` until it is closed.
class Connection final {
 public:
  // `tls`: null for plain HTTP.
  Connection(tcp::socket socket, asio::ssl::context* tls, std::list<Connection*>& all)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), all_(all), place_(all.insert(all.end(), this)) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
  }
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins a phase: the connection closes if the next one does not begin within `limit`. `all` is in the order in which
  // phases began.
  void BeginPhase(absl::Duration limit) {
    if (!is_open_) return;
    all_.splice(all_.end(), all_, place_);
    timer_.expires_after(absl::ToChronoNanoseconds(limit));
    timer_.async_wait([this](const error_code& error) {
      if (!error && timer_.expiry() <= std::chrono::steady_clock::now()) Close();
    });
  }

  // Pending reads and writes end with an error.
  void Close() {
    if (!is_open_) return;
    is_open_ = false;
    all_.erase(place_);
    timer_.cancel();
    error_code ignored;
    std::ignore = socket_.close(ignored);
  }

  // These throw boost::system::system_error when the connection is closed, by either side.
  awaitable<void> Handshake() {
    if (tls_.has_value()) co_await tls_->async_handshake(asio::ssl::stream_base::server, use_awaitable);
  }
  awaitable<size_t> Read(asio::mutable_buffer bytes) {
    if (tls_.has_value()) co_return co_await tls_->async_read_some(bytes, use_awaitable);
    co_return co_await socket_.async_read_some(bytes, use_awaitable);
  }
  awaitable<void> Write(const std::string& text) {
    if (tls_.has_value()) {
      co_await asio::async_write(*tls_, asio::buffer(text), use_awaitable);
    } else {
      co_await asio::async_write(socket_, asio::buffer(text), use_awaitable);
    }
  }
  // Stops writing, and ignores received data until the client also closes the connection.
  awaitable<void> Linger() {
    error_code error;
    if (tls_.has_value()) co_await tls_->async_shutdown(redirect_error(use_awaitable, error));
    std::ignore = socket_.shutdown(tcp::socket::shutdown_send, error);
    std::array<char, 4096> ignored;
    while (true) co_await socket_.async_read_some(asio::buffer(ignored), use_awaitable);
  }

 private:
  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  asio::steady_timer timer_;
  std::list<Connection*>& all_;
  const std::list<Connection*>::iterator place_;
  bool is_open_ = true;
};

}  // namespace

// Everything that runs in the server's thread.
class HttpServer::Loop final {
 public:
  Loop(std::map<std::string, Handler> handlers, std::string not_found, ssl_ctx_st* tls, const HttpLimits& limits)
      : handlers_(std::move(handlers)), not_found_(std::move(not_found)), limits_(limits) {
    if (tls == nullptr) return;
    SSL_CTX_up_ref(tls);
    tls_.emplace(tls);  // takes a reference
  }

  void Listen(ListeningSockets listening) {
    for (Descriptor& socket : listening.sockets) {
      sockaddr_storage address{};
      socklen_t length = sizeof(address);
      getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length);
      const tcp protocol = address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
      asio::co_spawn(context_, AcceptFrom(tcp::acceptor(context_, protocol, socket.Release())), asio::detached);
    }
  }
  void Run() { context_.run(); }
  // Thread-safe.
  void Stop() { context_.stop(); }

 private:
  awaitable<void> AcceptFrom(tcp::acceptor acceptor) {
    asio::steady_timer timer(context_);
    while (true) {
      error_code error;
      tcp::socket socket = co_await acceptor.async_accept(redirect_error(use_awaitable, error));
      const bool no_descriptor = error == asio::error::no_descriptors || error.value() == ENFILE;
      if (no_descriptor && connections_.empty()) {
        timer.expires_after(kAcceptAgain);
        co_await timer.async_wait(use_awaitable);
      } else if (no_descriptor || connections_.size() >= limits_.connections) {
        connections_.front()->Close();
      }
      if (!error) asio::co_spawn(context_, Serve(std::move(socket)), asio::detached);
    }
  }

  awaitable<void> Serve(tcp::socket socket) {
    Connection connection(std::move(socket), tls_.has_value() ? &*tls_ : nullptr, connections_);
    try {
      connection.BeginPhase(limits_.request);
      co_await connection.Handshake();
      std::string received;
      bool keep_alive = true;
      while (keep_alive) {
        const std::string answer = co_await AnswerNext(connection, received, keep_alive);
        connection.BeginPhase(limits_.answer);
        co_await connection.Write(answer);
        connection.BeginPhase(limits_.idle);
      }
      connection.BeginPhase(kLinger);
      co_await connection.Linger();
    } catch (const boost::system::system_error&) {
      // The client left, a phase took too long, or the connection made room for another one.
    }
  }

  // Waits for the next request and returns its answer. `received` holds received bytes that are not parsed yet.
  awaitable<std::string> AnswerNext(Connection& connection, std::string& received, bool& keep_alive) {
    Parser parser;
    parser.header_limit(std::numeric_limits<uint32_t>::max());  // Beast's limit ignores heads that arrive at once
    error_code error = http::error::need_more;
    bool has_begun = false;
    size_t used = 0;
    while (true) {
      if (!received.empty()) {
        if (!std::exchange(has_begun, true)) connection.BeginPhase(limits_.request);
        const size_t part = parser.put(asio::buffer(received, limits_.head_bytes - used), error);
        received.erase(0, part);
        used += part;
      }
      const bool is_too_long = error == http::error::need_more && used + received.size() >= limits_.head_bytes;
      if (is_too_long) error = http::error::header_limit;
      if (error != http::error::need_more) break;
      std::array<char, 4096> bytes;
      const size_t count = co_await connection.Read(asio::buffer(bytes));
      received.append(bytes.data(), count);
    }
    if (error) {
      keep_alive = false;
      co_return Serialize(ErrorResponse(error == http::error::header_limit ? 431 : 400), true, false);
    }
    // The server does not read request bodies.
    const bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
    keep_alive = parser.keep_alive() && !has_body;
    const HttpRequest request = ToHttpRequest(parser.get());
    co_return Serialize(Respond(request), request.method != "HEAD", keep_alive);
  }

  HttpResponse Respond(const HttpRequest& request) const {
    const auto found = handlers_.find(request.path);
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (found == handlers_.end() || !reads) return {.status = 404, .body = not_found_};
    return found->second(request);
  }

  const std::map<std::string, Handler> handlers_;
  const std::string not_found_;
  const HttpLimits limits_;
  std::optional<asio::ssl::context> tls_;
  std::list<Connection*> connections_;  // the one whose phase began first is in front
  asio::io_context context_{1};         // last: it owns the coroutines, and with them the connections
};

HttpServer::HttpServer(int port, std::unique_ptr<Loop> loop) : port_(port), loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const NamedAddress& name,
                                                              std::map<std::string, Handler> handlers, ssl_ctx_st* tls,
                                                              const HttpLimits& limits, std::string not_found) {
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name));
  LS_RETURN_IF_ERROR(Listen(name, listening));
  const int port = listening.port;
  try {
    auto loop = std::make_unique<Loop>(std::move(handlers), std::move(not_found), tls, limits);
    loop->Listen(std::move(listening));
    std::unique_ptr<HttpServer> server(new HttpServer(port, std::move(loop)));
    LS_RETURN_IF_ERROR(server->thread_.Start("the thread of HTTP", [&loop = *server->loop_] { loop.Run(); }));
    return server;
  } catch (const boost::system::system_error& error) {  // no descriptor for Asio's own use
    return CannotBind(name, error.what());
  }
}

HttpServer::~HttpServer() {
  loop_->Stop();
  thread_.Join();
}

}  // namespace longshort::server
