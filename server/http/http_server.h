// A small server of HTTP/1.1 for GETs that are answered at once. What a client can take of it is bounded: connections,
// bytes of a request's head, and time, so that a thousand slow ones keep nobody waiting. When there are as many
// connections as there may be, the one that has waited or been waited for the longest makes room.
//
// One thread serves all connections and calls the handlers: they must not wait.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/grpc_1_51/listening_sockets.h"
#include "server/http/http_request.h"
#include "server/http/http_transport.h"

namespace longshort {

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  // More fields of the head: name and value.
  std::vector<std::pair<std::string, std::string>> fields = {};
};

struct HttpLimits {
  size_t connections = 128;
  size_t head_bytes = 8192;
  // From a connection's beginning to the end of its request's head, TLS included.
  absl::Duration request = absl::Seconds(5);
  // For a client to take its answer.
  absl::Duration answer = absl::Seconds(10);
  // Between an answer and the next request; longer than scrapers wait by default.
  absl::Duration idle = absl::Seconds(75);
};

class HttpServer final {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest& request)>;

  // Answers GET and HEAD of these paths from now on, and everything else with 404. `tls` must outlive the server; null:
  // no TLS. Errors: UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const NamedAddress& name,
                                                           std::map<std::string, Handler> handlers,
                                                           ssl_ctx_st* tls = nullptr, const HttpLimits& limits = {});
  // Cuts off whoever is there.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return listening_.port; }

 private:
  enum class Phase { kRequest, kAnswer, kGoodbye };
  struct Connection {
    Descriptor socket;
    std::unique_ptr<HttpTransport> transport;
    Phase phase = Phase::kRequest;
    absl::Time since;     // when it began to wait, or to be waited for
    absl::Time deadline;  // of the phase
    std::string received;
    std::string answer;
    size_t written = 0;
    bool keep_alive = true;
    bool has_turn = false;  // goes on without its socket being ready
  };

  HttpServer(ListeningSockets listening, std::map<std::string, Handler> handlers, ssl_ctx_st* tls,
             const HttpLimits& limits)
      : listening_(std::move(listening)), handlers_(std::move(handlers)), tls_(tls), limits_(limits) {}

  void Run();
  // Until when nothing need be done unless a socket is ready.
  int MillisecondsLeft(absl::Time now) const;
  // Takes some of what waits at one socket. Returns whether there are descriptors for more.
  bool AcceptFrom(int listening, absl::Time now);
  void MakeRoom();

  // Goes on with a connection as far as that is possible now. Each returns whether the connection goes on.
  bool Advance(Connection& connection, absl::Time now);
  bool ReadOn(Connection& connection, absl::Time now, bool* waits);
  bool WriteOn(Connection& connection, absl::Time now, bool* waits);
  bool SayGoodbye(Connection& connection, bool* waits);
  // Answers the request that has come, if one has.
  bool AnswerRequest(Connection& connection, absl::Time now);
  HttpResponse Respond(const HttpRequest& request) const;
  void BeginAnswer(const HttpResponse& response, bool with_body, Connection& connection, absl::Time now);

  const ListeningSockets listening_;
  const std::map<std::string, Handler> handlers_;
  ssl_ctx_st* const tls_;
  const HttpLimits limits_;
  Descriptor wake_;  // readable once the server ends
  // The thread's.
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace longshort
