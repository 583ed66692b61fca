#include "server/http/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/access/client_certificate.h"
#include "server/http/connection_exchange.h"
#include "server/http/http_status.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

// Received bytes that are not parsed yet, at most. A client that sends more waits.
constexpr size_t kReadAheadBytes = 64 << 10;
// A client must send or take so many bytes within one phase.
constexpr size_t kSliceBytes = 64 << 10;
constexpr size_t kTlsReadBytes = 16 << 10;  // of one record
// Lingering close: a client may still be sending when it gets its last answer. If the connection closed at once, the
// system would reset it and the client would lose the answer.
constexpr absl::Duration kLinger = absl::Seconds(1);

[[noreturn]] void ThrowClosed() { throw boost::system::system_error(asio::error::operation_aborted); }

// In gRPC's form.
std::string PeerOf(const HttpSocket& socket) {
  error_code error;
  const HttpSocket::endpoint_type any = socket.remote_endpoint(error);
  if (error) return "";
  if (any.protocol().family() == AF_UNIX) return "unix:";
  tcp::endpoint peer;
  std::memcpy(peer.data(), any.data(), std::min(any.size(), peer.capacity()));
  const std::string address = peer.address().to_string();
  return peer.address().is_v6() ? absl::StrCat("ipv6:[", address, "]:", peer.port())
                                : absl::StrCat("ipv4:", address, ":", peer.port());
}

}  // namespace

HttpConnection::HttpConnection(HttpSocket socket, asio::ssl::context* tls, Shared& shared)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      changed_(socket_.get_executor()),
      room_(socket_.get_executor()),
      shared_(shared),
      peer_(PeerOf(socket_)),
      body_bytes_(shared.limits.bodies) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
  changed_.expires_at(std::chrono::steady_clock::time_point::max());
  room_.expires_at(std::chrono::steady_clock::time_point::max());
  shared_.all.insert(this);
  shared_.ReportConnections();
}

HttpConnection::~HttpConnection() { Close(); }

void HttpConnection::LeaveEvictable() {
  if (place_.has_value()) shared_.evictable.erase(*std::exchange(place_, std::nullopt));
}

void HttpConnection::BeginPhase(absl::Duration limit) {
  if (!is_open_) return;
  LeaveEvictable();
  place_ = shared_.evictable.insert(shared_.evictable.end(), this);
  timed_out_ = false;
  timer_.expires_after(absl::ToChronoNanoseconds(limit));
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const std::shared_ptr<HttpConnection> self = weak.lock();
    if (error || self == nullptr || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
    if (!self->receiving_) return self->Close();
    self->timed_out_ = true;
    self->changed_.cancel();
  });
}

void HttpConnection::EndPhase() {
  timer_.expires_at(std::chrono::steady_clock::time_point::max());  // a handler that is queued already finds this time
  LeaveEvictable();
}

void HttpConnection::Close() {
  if (!std::exchange(is_open_, false)) return;
  shared_.all.erase(this);
  shared_.ReportConnections();
  LeaveEvictable();
  timer_.cancel();
  changed_.cancel();
  room_.cancel();
  error_code ignored;
  std::ignore = socket_.close(ignored);
}

awaitable<void> HttpConnection::Change() {
  if (!is_open_) ThrowClosed();
  error_code ignored;
  co_await changed_.async_wait(redirect_error(use_awaitable, ignored));
  if (!is_open_) ThrowClosed();
}

awaitable<size_t> HttpConnection::ReadSome() {
  if (tls_.has_value()) {
    tls_buffer_.resize(kTlsReadBytes);
    const size_t count = co_await tls_->async_read_some(asio::buffer(tls_buffer_), use_awaitable);
    received_.append(tls_buffer_.data(), count);
    co_return count;
  }
  // The buffer is shared: no connection holds one while it waits.
  while (true) {
    co_await socket_.async_wait(HttpSocket::wait_read, use_awaitable);
    error_code error;
    const size_t count = socket_.read_some(asio::buffer(shared_.scratch), error);
    if (error == asio::error::would_block) continue;
    if (error) throw boost::system::system_error(error);
    received_.append(shared_.scratch.data(), count);
    co_return count;
  }
}

void HttpConnection::ReadCertificate() {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(tls_->native_handle()), X509_free);
  has_certificate_ = certificate != nullptr;
  if (has_certificate_) certificate_ = CredentialsOf(*certificate);
}

awaitable<void> HttpConnection::ReadAhead() {
  try {
    while (is_open_) {
      if (received_.size() < kReadAheadBytes) {
        co_await ReadSome();
      } else {
        error_code ignored;
        co_await room_.async_wait(redirect_error(use_awaitable, ignored));
      }
      changed_.cancel();
    }
  } catch (const boost::system::system_error&) {
    at_end_ = true;
    changed_.cancel();
  }
}

awaitable<void> HttpConnection::Send(std::string_view head, std::string_view body) {
  std::string first(head);
  const size_t beside = std::min(body.size(), first.size() < kSliceBytes ? kSliceBytes - first.size() : 0);
  first.append(body.substr(0, beside));
  std::string_view slice = first;
  std::string_view rest = body.substr(beside);
  while (true) {
    BeginPhase(shared_.limits.answer);
    if (tls_.has_value()) {
      co_await asio::async_write(*tls_, asio::buffer(slice), use_awaitable);
    } else {
      co_await asio::async_write(socket_, asio::buffer(slice), use_awaitable);
    }
    if (rest.empty()) co_return;
    slice = rest.substr(0, kSliceBytes);
    rest.remove_prefix(slice.size());
  }
}

awaitable<void> HttpConnection::Linger() {
  BeginPhase(kLinger);
  error_code error;
  if (tls_.has_value()) co_await tls_->async_shutdown(redirect_error(use_awaitable, error));
  std::ignore = socket_.shutdown(HttpSocket::shutdown_send, error);
  while (!at_end_) {
    received_.clear();
    room_.cancel();
    co_await Change();
  }
}

awaitable<void> HttpConnection::Serve() {
  const std::shared_ptr<HttpConnection> keep = shared_from_this();
  try {
    socket_.non_blocking(true);
    BeginPhase(shared_.limits.request);
    if (tls_.has_value()) {
      co_await tls_->async_handshake(asio::ssl::stream_base::server, use_awaitable);
      ReadCertificate();
    }
    asio::co_spawn(
        socket_.get_executor(), [keep]() { return keep->ReadAhead(); }, asio::detached);
    while (co_await ServeNext()) BeginPhase(shared_.limits.idle);
    co_await Linger();
  } catch (const boost::system::system_error&) {
    // The client left, a phase took too long, or the connection made room for another one.
  }
  Close();
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->End();
}

awaitable<bool> HttpConnection::ServeNext() {
  Parser parser;
  parser.header_limit(std::numeric_limits<uint32_t>::max());  // Beast's limit ignores heads that arrive at once
  parser.body_limit(std::numeric_limits<uint64_t>::max());    // ParseBody limits it
  keep_alive_ = false;
  without_body_ = false;
  fields_.clear();
  if (const int error = co_await ReadHead(parser); error != 0) {
    const HttpResponse response = {.status = error, .body = absl::StrCat(HttpReason(error), "\n")};
    co_await Send(HeadOf(response, response.body.size()), response.body);
    co_return false;
  }
  HttpRequest head = RequestOf(parser);
  HttpPlan plan = shared_.router(head);
  fields_ = std::move(plan.fields);
  exchange_ = std::make_shared<Exchange>(*this, std::move(head));
  const std::shared_ptr<Exchange> exchange = exchange_;
  if (!parser.is_done() && absl::EqualsIgnoreCase(exchange->request().Find("expect").value_or(""), "100-continue") &&
      parser.content_length().value_or(0) <= plan.max_body_bytes) {
    co_await Send("HTTP/1.1 100 Continue\r\n\r\n", "");
  }
  if (!plan.streams_body) {
    exchange->request().body_status = co_await ReadBody(parser, plan.max_body_bytes);
    exchange->request().body = std::move(parser.get().body());
  }
  without_body_ = exchange->request().method == "HEAD";
  sends_chunks_ = parser.get().version() >= 11;
  keep_alive_ = parser.keep_alive() && plan.keep_alive && sends_chunks_ && (plan.streams_body || parser.is_done());
  EndPhase();
  const bool is_counted = plan.is_call && shared_.calls < shared_.limits.calls();
  if (is_counted) ++shared_.calls;
  const absl::Cleanup uncount = [this, is_counted] { shared_.calls -= is_counted ? 1 : 0; };
  if (plan.is_call && !is_counted) {
    exchange->request().body_status = absl::UnavailableError(
        absl::StrCat("the server has ", shared_.calls, " calls by HTTP in progress, its limit; try again in a second"));
  }
  plan.serve(exchange);
  const bool stays = co_await ServeExchange(exchange, parser, plan);
  exchange_ = nullptr;
  exchange->End();
  body_bytes_.SetAmount(0);
  co_return stays;
}

awaitable<bool> HttpConnection::ServeExchange(const std::shared_ptr<Exchange>& exchange, Parser& parser,
                                              const HttpPlan& plan) {
  while (true) {
    if (!exchange->parts_.empty()) {
      Part part = std::move(exchange->parts_.front());
      exchange->parts_.pop_front();
      bool sent = false;
      try {
        co_await Send(part.head, part.body);
        EndPhase();
        sent = true;
      } catch (const boost::system::system_error&) {
        Close();
      }
      exchange->answered_ = sent && part.last;
      part.done(sent);
      if (!sent) ThrowClosed();
      if (part.last) co_return keep_alive_&& parser.is_done();
    } else if (exchange->reading_ != nullptr && (parser.is_done() || !received_.empty())) {
      absl::StatusOr<std::string> body = "";
      if (const absl::Status parsed = ParseBody(parser, plan.max_body_bytes); !parsed.ok()) body = parsed;
      if (body.ok()) body = std::exchange(parser.get().body(), "");
      if (!body.ok() || !body->empty() || parser.is_done()) std::exchange(exchange->reading_, nullptr)(std::move(body));
    } else if (at_end_) {
      Close();
      ThrowClosed();
    } else {
      co_await Change();
    }
  }
}

awaitable<int> HttpConnection::ReadHead(Parser& parser) {
  error_code error = http::error::need_more;
  bool has_begun = false;
  size_t used = 0;
  while (true) {
    if (!received_.empty()) {
      if (!std::exchange(has_begun, true)) BeginPhase(shared_.limits.request);
      const std::string_view head = std::string_view(received_).substr(0, shared_.limits.head_bytes - used);
      const size_t parsed = parser.put(asio::buffer(head.data(), head.size()), error);
      received_.erase(0, parsed);
      used += parsed;
      room_.cancel();
      if (parser.is_header_done()) break;
      if (error != http::error::need_more) co_return 400;
      if (used + received_.size() >= shared_.limits.head_bytes) co_return 431;
    }
    if (at_end_) ThrowClosed();
    receiving_ = has_begun;
    co_await Change();
    receiving_ = false;
    if (timed_out_) co_return 408;
  }
  const auto transfer = parser.get().find(http::field::transfer_encoding);
  const bool knows =
      transfer == parser.get().end() || absl::EqualsIgnoreCase(std::string(transfer->value()), "chunked");
  co_return knows ? 0 : 501;
}

HttpRequest HttpConnection::RequestOf(const Parser& parser) const {
  HttpRequest request;
  request.method = std::string(parser.get().method_string());
  const std::string target(parser.get().target());
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (query != std::string::npos) request.query = target.substr(query + 1);
  for (const auto& field : parser.get()) {
    request.fields.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
  }
  request.peer = peer_;
  request.certificate = certificate_;
  request.has_certificate = has_certificate_;
  return request;
}

absl::Status HttpConnection::ParseBody(Parser& parser, size_t max_bytes) {
  while (!received_.empty() && !parser.is_done()) {
    error_code error;
    const size_t parsed = parser.put(asio::buffer(received_), error);
    received_.erase(0, parsed);
    if (error && error != http::error::need_more) return HttpError(400, "the request's body is malformed");
    if (parsed == 0) break;
  }
  room_.cancel();
  const size_t bytes = parser.get().body().size();
  if (bytes > max_bytes) return BodyTooLarge(max_bytes);
  if (bytes <= kSliceBytes || shared_.limits.bodies == nullptr) return absl::OkStatus();
  if (body_bytes_.Grow(static_cast<int64_t>(bytes)).ok()) return absl::OkStatus();
  return absl::UnavailableError("the server holds too many bytes of requests; try again in a second");
}

awaitable<absl::Status> HttpConnection::ReadBody(Parser& parser, size_t max_bytes) {
  if (parser.content_length().value_or(0) > max_bytes) co_return BodyTooLarge(max_bytes);
  size_t next = 0;
  while (true) {
    if (absl::Status status = ParseBody(parser, max_bytes); !status.ok()) co_return status;
    if (parser.is_done()) co_return absl::OkStatus();
    if (at_end_) ThrowClosed();
    if (parser.get().body().size() >= next) {
      BeginPhase(shared_.limits.body);
      next = parser.get().body().size() + kSliceBytes;
    }
    receiving_ = true;
    co_await Change();
    receiving_ = false;
    if (timed_out_) {
      co_return HttpError(
          408, absl::StrCat("the request's body came too slowly: ", parser.get().body().size(),
                            " bytes arrived; send at least 64 KiB in ", absl::FormatDuration(shared_.limits.body)));
    }
  }
}

std::string HttpConnection::HeadOf(const HttpResponse& response, std::optional<size_t> length) const {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ", HttpReason(response.status), "\r\n");
  if (!response.content_type.empty()) absl::StrAppend(&head, "Content-Type: ", response.content_type, "\r\n");
  if (length.has_value()) {
    absl::StrAppend(&head, "Content-Length: ", *length, "\r\n");
  } else if (sends_chunks_) {
    absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n");
  }
  absl::StrAppend(&head, "Connection: ", keep_alive_ ? "keep-alive" : "close", "\r\n");
  for (const HttpFields* fields : {&response.fields, &fields_}) {
    for (const auto& [name, value] : *fields) absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  return absl::StrCat(head, "\r\n");
}

}  // namespace longshort::server
