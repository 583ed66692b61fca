#include "server/http/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr int kMostAtOnce = 16;
// While the process has no descriptor for a connection, it is looked so often whether there is one.
constexpr int kLookAgainMilliseconds = 100;
// Who is sent an error still sends, maybe: it is heard out for so long, or the system would throw the answer away.
constexpr absl::Duration kGoodbye = absl::Seconds(1);

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "";
  }
}

HttpResponse ErrorResponse(int status) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(ReasonOf(status), "\n");
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const NamedAddress& name,
                                                              std::map<std::string, Handler> handlers, ssl_ctx_st* tls,
                                                              const HttpLimits& limits) {
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name));
  LS_RETURN_IF_ERROR(Listen(name, listening));
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(listening), std::move(handlers), tls, limits));
  server->wake_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (server->wake_.number() < 0) return CannotBind(name, std::system_category().message(errno));
  try {
    server->thread_ = std::thread(&HttpServer::Run, server.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the thread of HTTP: ", error.what()));
  }
  return server;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  eventfd_write(wake_.number(), 1);
  thread_.join();
}

void HttpServer::Run() {
  bool has_room = true;
  std::vector<pollfd> sockets;
  while (true) {
    const size_t listeners = has_room ? listening_.sockets.size() : 0;
    sockets.assign(1, {.fd = wake_.number(), .events = POLLIN, .revents = 0});
    for (size_t i = 0; i < listeners; ++i) {
      sockets.push_back({.fd = listening_.sockets[i].number(), .events = POLLIN, .revents = 0});
    }
    for (const Connection& connection : connections_) {
      sockets.push_back({.fd = connection.socket.number(), .events = connection.transport->wait_for(), .revents = 0});
    }
    const int most = MillisecondsLeft(MonotonicNow());
    poll(sockets.data(), sockets.size(), has_room ? most : kLookAgainMilliseconds);
    if (sockets[0].revents != 0) return;
    const absl::Time now = MonotonicNow();
    size_t next = 1 + listeners;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++next) {
      const bool is_ready = sockets[next].revents != 0 || connection->has_turn;
      const bool goes_on = is_ready ? Advance(*connection, now) : now < connection->deadline;
      connection = goes_on ? std::next(connection) : connections_.erase(connection);
    }
    has_room = true;
    for (const Descriptor& listening : listening_.sockets) has_room = AcceptFrom(listening.number(), now) && has_room;
  }
}

int HttpServer::MillisecondsLeft(absl::Time now) const {
  absl::Time first = absl::InfiniteFuture();
  for (const Connection& connection : connections_) {
    first = std::min(first, connection.has_turn ? now : connection.deadline);
  }
  if (first == absl::InfiniteFuture()) return -1;
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(first - now) + 1));
}

bool HttpServer::AcceptFrom(int listening, absl::Time now) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Descriptor socket(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.number() < 0) {
      if (errno != EMFILE && errno != ENFILE) return true;  // there is none, or what was wrong is that connection's
      if (connections_.empty()) return false;
      MakeRoom();
      continue;
    }
    if (connections_.size() >= limits_.connections) MakeRoom();
    Connection connection;
    connection.transport = MakeHttpTransport(socket.number(), tls_);
    if (connection.transport == nullptr) continue;
    connection.socket = std::move(socket);
    connection.since = now;
    connection.deadline = now + limits_.request;
    connections_.push_back(std::move(connection));
    if (!Advance(connections_.back(), now)) connections_.pop_back();
  }
  return true;
}

void HttpServer::MakeRoom() {
  connections_.erase(std::min_element(connections_.begin(), connections_.end(),
                                      [](const Connection& a, const Connection& b) { return a.since < b.since; }));
}

bool HttpServer::Advance(Connection& connection, absl::Time now) {
  if (now >= connection.deadline) return false;
  connection.has_turn = false;
  bool goes_on = true;
  for (bool waits = false; goes_on && !waits;) {
    switch (connection.phase) {
      case Phase::kRequest:
        goes_on = ReadOn(connection, now, &waits);
        break;
      case Phase::kAnswer:
        goes_on = WriteOn(connection, now, &waits);
        // Others have their turn before the next request of this one, which may have been read.
        if (goes_on && connection.phase == Phase::kRequest) return connection.has_turn = true;
        break;
      case Phase::kGoodbye:
        goes_on = SayGoodbye(connection, &waits);
        // So that who goes on sending keeps neither the others waiting nor this connection.
        if (goes_on && !waits) return connection.has_turn = true;
        break;
    }
  }
  return goes_on;
}

bool HttpServer::ReadOn(Connection& connection, absl::Time now, bool* waits) {
  if (AnswerRequest(connection, now)) return true;
  std::array<char, 4096> bytes;
  const size_t most = std::min(bytes.size(), limits_.head_bytes - connection.received.size());
  const int64_t read = connection.transport->Read(bytes.data(), most);
  *waits = read == 0;
  if (read <= 0) return read == 0;
  // The next request has begun: its client is waited for from now on.
  if (connection.received.empty()) {
    connection.since = now;
    connection.deadline = now + limits_.request;
  }
  connection.received.append(bytes.data(), static_cast<size_t>(read));
  return true;
}

bool HttpServer::AnswerRequest(Connection& connection, absl::Time now) {
  const absl::StatusOr<std::optional<HttpRequestHead>> head = ReadHttpRequest(connection.received);
  if (head.ok() && head->has_value()) {
    const HttpRequest& request = (*head)->request;
    connection.keep_alive = request.keep_alive && !request.has_body;
    connection.received.erase(0, (*head)->bytes);
    BeginAnswer(Respond(request), request.method != "HEAD", connection, now);
    return true;
  }
  if (head.ok() && connection.received.size() < limits_.head_bytes) return false;
  connection.keep_alive = false;
  BeginAnswer(ErrorResponse(head.ok() ? 431 : 400), true, connection, now);
  return true;
}

HttpResponse HttpServer::Respond(const HttpRequest& request) const {
  const auto found = handlers_.find(request.path);
  const bool asks = request.method == "GET" || request.method == "HEAD";
  if (found == handlers_.end() || !asks) return ErrorResponse(404);
  return found->second(request);
}

void HttpServer::BeginAnswer(const HttpResponse& response, bool with_body, Connection& connection, absl::Time now) {
  connection.answer =
      absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                   "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
                   "\r\nConnection: ", connection.keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.fields) absl::StrAppend(&connection.answer, name, ": ", value, "\r\n");
  absl::StrAppend(&connection.answer, "\r\n", with_body ? response.body : std::string());
  connection.written = 0;
  connection.phase = Phase::kAnswer;
  connection.since = now;
  connection.deadline = now + limits_.answer;
}

bool HttpServer::WriteOn(Connection& connection, absl::Time now, bool* waits) {
  const std::string_view left = std::string_view(connection.answer).substr(connection.written);
  const int64_t written = connection.transport->Write(left.data(), left.size());
  *waits = written == 0;
  if (written <= 0) return written == 0;
  connection.written += static_cast<size_t>(written);
  if (connection.written < connection.answer.size()) return true;
  connection.answer = std::string();
  connection.since = now;
  if (connection.keep_alive) {
    connection.phase = Phase::kRequest;
    connection.deadline = now + limits_.idle;
  } else {
    connection.phase = Phase::kGoodbye;
    connection.deadline = now + kGoodbye;
    connection.received = std::string();
    connection.transport->EndWriting();
  }
  return true;
}

bool HttpServer::SayGoodbye(Connection& connection, bool* waits) {
  std::array<char, 4096> unwanted;
  const int64_t read = connection.transport->Read(unwanted.data(), unwanted.size());
  *waits = read == 0;
  return read >= 0;
}

}  // namespace longshort
