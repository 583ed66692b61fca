// The connection of one client: reads requests, has them served one after another, and sends the answers.
//
// Thread: all functions run on the server's I/O thread. The exchanges that the connection makes are thread-safe.
#pragma once

// clang-format off
#include <utility>  // Boost 1.74's awaitable.hpp needs it
// clang-format on
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "server/http/http_exchange.h"
#include "server/http/http_server.h"

namespace longshort::server {

// Of TCP, or a Unix socket.
using HttpSocket = boost::asio::generic::stream_protocol::socket;

class HttpConnection final : public std::enable_shared_from_this<HttpConnection> {
 public:
  // What all connections of a server share; it outlives them.
  struct Shared {
    void ReportConnections() const {
      if (limits.on_connections != nullptr) limits.on_connections(all.size());
    }

    const HttpRouter& router;
    const HttpLimits& limits;
    boost::asio::thread_pool& workers;
    // Those that may be closed for a new connection, the one whose phase began first in front. A connection is not in
    // the list while a request that was read is being served.
    std::list<HttpConnection*> evictable = {};
    std::unordered_set<HttpConnection*> all = {};
    size_t calls = 0;                      // that are being served
    std::atomic<int64_t> exchanges = 0;    // objects, whatever thread holds them
    std::array<char, 65536> scratch = {};  // for reading; used within one function only
  };

  // `tls`: null for plain HTTP.
  HttpConnection(HttpSocket socket, boost::asio::ssl::context* tls, Shared& shared);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Serves the client until the connection closes.
  boost::asio::awaitable<void> Serve();
  // Pending reads and writes end with an error.
  void Close();

 private:
  class Exchange;
  struct Body;
  using Parser = boost::beast::http::request_parser<Body>;
  // A part of an answer that waits to be sent.
  struct Part {
    std::string head;
    std::string body;
    bool last = false;
    HttpExchange::Done done;
  };

  // A client must send or take so many bytes within one phase.
  static constexpr size_t kSliceBytes = 64 << 10;
  // If so many bytes wait to be parsed, reading pauses.
  static constexpr size_t kReadAheadBytes = 64 << 10;

  // For the coroutines: ends Serve.
  [[noreturn]] static void ThrowClosed();

  // Each begins a phase: the connection closes if the phase lasts longer than `limit`, or for a new connection.
  void BeginPhase(absl::Duration limit);
  // Ends the phase; the connection stays as long as its request is being served.
  void EndPhase();
  void LeaveEvictable();

  boost::asio::awaitable<void> ReadAhead();
  boost::asio::awaitable<size_t> ReadSome();
  // Of the client, after the handshake.
  void ReadCertificate();
  // Waits until something was received, an exchange has work, or the connection closed.
  boost::asio::awaitable<void> Change();
  boost::asio::awaitable<void> Send(std::string_view head, std::string_view body);
  boost::asio::awaitable<void> Linger();

  // In connection_requests.cc:
  // Serves the next request. Returns whether the connection stays open for another one.
  boost::asio::awaitable<bool> ServeNext();
  // Reads the head. Returns the HTTP status of an error, or 0.
  boost::asio::awaitable<int> ReadHead(Parser& parser);
  HttpRequest RequestOf(const Parser& parser) const;
  // Parses what was received, and counts it against the budget of bodies.
  absl::Status ParseBody(Parser& parser, size_t max_bytes);
  // Passes what has arrived of a streamed body, its end, or an error to its reader. Returns false if there is nothing
  // to pass.
  bool PassBody(Exchange& exchange, Parser& parser, size_t max_bytes);
  boost::asio::awaitable<absl::Status> ReadBody(Parser& parser, size_t max_bytes);
  boost::asio::awaitable<bool> ServeExchange(const std::shared_ptr<Exchange>& exchange, Parser& parser,
                                             const HttpPlan& plan);
  std::string HeadOf(const HttpResponse& response, std::optional<size_t> length) const;

  HttpSocket socket_;
  std::optional<boost::asio::ssl::stream<HttpSocket&>> tls_;
  boost::asio::steady_timer timer_;    // of the phase
  boost::asio::steady_timer changed_;  // wakes Serve
  boost::asio::steady_timer room_;     // wakes ReadAhead
  Shared& shared_;
  std::optional<std::list<HttpConnection*>::iterator> place_;  // in Shared::evictable
  bool is_open_ = true;
  std::string peer_;
  Credentials certificate_;
  bool has_certificate_ = false;

  std::string tls_buffer_;
  std::string received_;      // not parsed yet
  bool at_end_ = false;       // the client sends nothing more
  Budget::Share body_bytes_;  // of the request that is being read or served
  std::shared_ptr<Exchange> exchange_;
  // Of the current request:
  bool receiving_ = false;     // a phase that is too long ends with 408
  bool timed_out_ = false;     // that happened
  bool without_body_ = false;  // HEAD
  bool sends_chunks_ = true;   // not to clients of HTTP/1.0
  bool keep_alive_ = true;
  HttpFields fields_;  // of the plan
};

}  // namespace longshort::server
