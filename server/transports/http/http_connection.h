// The connection of one client: reads requests, has them served one after another, and sends the answers.
//
// Thread: all functions run on the server's I/O thread. The exchanges that the connection makes are thread-safe.
#pragma once

// clang-format off
#include <utility>  // Boost 1.74's awaitable.hpp needs it
// clang-format on
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/schedule/fair_pool.h"
#include "server/transports/http/client_turns.h"
#include "server/transports/http/http_exchange.h"
#include "server/transports/http/http_server.h"
#include "server/transports/http/http_stream.h"

namespace longshort::server {

class HttpConnection final : public std::enable_shared_from_this<HttpConnection> {
 public:
  // What all connections of a server share; it outlives them.
  struct Shared {
    void ReportConnections() const {
      if (limits.on_connections != nullptr) limits.on_connections(all.size());
    }
    void ReportFailure(const char* what) const {
      if (limits.on_failure != nullptr) limits.on_failure(what);
    }
    // Whether an address has at least as many connections as others on average.
    bool HasMany(const std::string& address) const {
      const auto found = of_address.find(address);
      return found != of_address.end() && found->second * of_address.size() >= all.size();
    }
    // The connection to close for a new one of `address`: of those whose address has many, the one whose phase began
    // first. Null if there is none; an address that has many gets no other's place.
    HttpConnection* Victim(const std::string& address) const;

    const HttpRouter& router;
    const HttpLimits& limits;
    core::FairPool* const handshakes;  // null without TLS
    ClientTurns& turns;
    // Those that may be closed for a new connection, in the order in which their phases began. A connection is not in
    // the list while a request that was read is being served.
    std::list<HttpConnection*> evictable = {};
    std::unordered_set<HttpConnection*> all = {};
    std::unordered_map<std::string, size_t> of_address = {};  // the number of connections
    size_t calls = 0;                                         // that are being served
    std::unordered_map<std::string, size_t> calls_of = {};    // HttpPlan::client
    std::atomic<int64_t> exchanges = 0;                       // objects, whatever thread holds them
    int64_t date_second = 0;
    std::string date = {};  // Date in that second: to write it takes as long as the rest of a head
  };

  // `tls`: null for plain HTTP.
  HttpConnection(HttpSocket socket, ssl_ctx_st* tls, Shared& shared);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // ClientAddress of a socket's client, and of this one.
  static std::string AddressOf(const HttpSocket& socket);
  const std::string& address() const { return address_; }
  // Serves the client until the connection closes. REQUIRES: a shared pointer owns the connection.
  void Start();
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
    SharedBytes shared;  // in place of `body`, unless they are empty
    bool last = false;
    HttpExchange::Done done;
  };

  // A client must send or take so many bytes within one phase.
  static constexpr size_t kSliceBytes = 64 << 10;

  boost::asio::awaitable<void> Serve();
  // For the coroutines: ends Serve.
  [[noreturn]] static void ThrowClosed();

  // Each begins a phase: the connection closes if the phase lasts longer than `limit`, or for a new connection.
  void BeginPhase(absl::Duration limit);
  // Ends the phase; the connection stays as long as its request is being served.
  void EndPhase();
  void LeaveEvictable();
  void StartTimer();

  // If so many bytes wait to be parsed, reading pauses. Fewer before the head of a request has been judged.
  size_t ReadAheadBytes() const { return parser_ == nullptr ? shared_.limits.head_bytes : 16 << 10; }
  boost::asio::awaitable<void> ReadAhead();
  // Removes so many bytes from received_.
  void Consume(size_t bytes);
  // Of the client, after the handshake.
  void ReadCertificate();
  // Waits for the client's turn.
  boost::asio::awaitable<void> Turn();
  // Waits until something was received, an exchange has work, the connection closed, or `limit` has passed.
  boost::asio::awaitable<void> Change(absl::Duration limit = absl::InfiniteDuration());
  boost::asio::awaitable<void> Send(std::string_view head, std::string_view body);
  boost::asio::awaitable<void> Linger();

  // In connection_requests.cc:
  // Serves the next request. Returns whether the connection stays open for another one.
  boost::asio::awaitable<bool> ServeNext();
  // Reads the head. Returns the HTTP status of an error, or 0.
  boost::asio::awaitable<int> ReadHead(Parser& parser);
  HttpRequest RequestOf(const Parser& parser) const;
  // Counts the request among the calls that are being served, if it is one. Errors: as HttpPlan::is_call.
  absl::Status BeginCall();
  void EndCall();
  // Parses what was received of the body.
  absl::Status ParseBody();
  // Whether the whole body is here. Drops what has arrived of it.
  bool BodyIsHere();
  // Gives the body to its reader: all of it, or what has arrived, or an error. Returns false if there is nothing yet.
  boost::asio::awaitable<bool> PassBody(Exchange& exchange);
  // Returns when the whole body has arrived, or an answer waits to be sent.
  boost::asio::awaitable<absl::StatusOr<std::string>> ReadBody(Exchange& exchange);
  boost::asio::awaitable<bool> ServeExchange(const std::shared_ptr<Exchange>& exchange);
  // Ends Serve if the client has left. A client that sends nothing more may still wait for its answer: if it does not,
  // its system answers an interim response with a reset, which the next look finds.
  boost::asio::awaitable<void> LookForClient(const Exchange& exchange);
  // The value of the field Date.
  const std::string& DateNow();
  std::string HeadOf(const HttpResponse& response, std::optional<size_t> length);

  HttpStream stream_;
  using Clock = std::chrono::steady_clock;
  // Fires at the end of the phase, or earlier and then starts again: a start costs more than a look at phase_end_.
  boost::asio::steady_timer timer_;
  bool timer_runs_ = false;
  Clock::time_point phase_end_ = Clock::time_point::max();
  boost::asio::steady_timer changed_;  // wakes Serve
  boost::asio::steady_timer room_;     // wakes ReadAhead
  Shared& shared_;
  std::optional<std::list<HttpConnection*>::iterator> place_;  // in Shared::evictable
  bool is_open_ = true;
  std::string peer_;
  std::string address_;
  Credentials certificate_;
  bool has_certificate_ = false;

  std::string received_;  // not parsed yet
  bool at_end_ = false;   // the client sends nothing more
  bool lingers_ = false;  // what still comes is dropped
  std::shared_ptr<Exchange> exchange_;
  // Of the current request:
  Parser* parser_ = nullptr;
  bool is_call_ = false;
  std::string client_;
  bool is_counted_ = false;    // in Shared::calls
  bool expects_ = false;       // the client waits for consent before it sends the body
  bool receiving_ = false;     // a phase that is too long ends with 408
  bool timed_out_ = false;     // that happened
  bool without_body_ = false;  // HEAD
  bool sends_chunks_ = true;   // not to clients of HTTP/1.0
  bool keep_alive_ = true;
  bool has_answered_ = false;  // a part of the answer was sent
  absl::Duration question_interval_;
  absl::Time next_question_;  // when LookForClient may send the next interim response
  HttpFields fields_;         // of the plan
};

}  // namespace longshort::server
