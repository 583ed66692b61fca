#include "server/transports/http/http_connection.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "server/access/access_table.h"
#include "server/transports/http/connection_exchange.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

// Lingering close: a client may still be sending when it gets its last answer. If the connection closed at once, the
// system would reset it and the client would lose the answer.
constexpr absl::Duration kLinger = absl::Seconds(1);
constexpr absl::Duration kHandshakeTime = absl::Milliseconds(1);  // predicted

// In gRPC's form.
std::string PeerOf(const HttpSocket& socket) {
  error_code error;
  const HttpSocket::endpoint_type any = socket.remote_endpoint(error);
  if (error) return "";
  if (any.protocol().family() == AF_UNIX) return "unix:";
  tcp::endpoint peer;
  std::memcpy(peer.data(), any.data(), std::min(any.size(), peer.capacity()));
  const std::string address = peer.address().to_string();
  return peer.address().is_v6() ? absl::StrCat("ipv6:%5B", address, "%5D:", peer.port())
                                : absl::StrCat("ipv4:", address, ":", peer.port());
}

}  // namespace

HttpConnection::HttpConnection(HttpSocket socket, SSL_CTX* tls, Shared& shared)
    : stream_(std::move(socket), tls),
      timer_(stream_.socket().get_executor()),
      changed_(timer_.get_executor()),
      room_(timer_.get_executor()),
      shared_(shared),
      peer_(PeerOf(stream_.socket())),
      address_(ClientAddress(peer_)) {
  room_.expires_at(std::chrono::steady_clock::time_point::max());
  shared_.all.insert(this);
  ++shared_.of_address[address_];
  shared_.ReportConnections();
}

HttpConnection::~HttpConnection() { Close(); }

HttpConnection* HttpConnection::Shared::Victim(const std::string& address) const {
  for (HttpConnection* const one : evictable) {
    if (HasMany(one->address())) return one;
  }
  return evictable.empty() || HasMany(address) ? nullptr : evictable.front();
}

std::string HttpConnection::AddressOf(const HttpSocket& socket) { return ClientAddress(PeerOf(socket)); }

void HttpConnection::LeaveEvictable() {
  if (place_.has_value()) shared_.evictable.erase(*std::exchange(place_, std::nullopt));
}

void HttpConnection::BeginPhase(absl::Duration limit) {
  if (!is_open_) return;
  if (place_.has_value()) {
    shared_.evictable.splice(shared_.evictable.end(), shared_.evictable, *place_);
  } else {
    place_ = shared_.evictable.insert(shared_.evictable.end(), this);
  }
  timed_out_ = false;
  phase_end_ = Clock::now() + absl::ToChronoNanoseconds(limit);
  if (!timer_runs_ || phase_end_ < timer_.expiry()) StartTimer();
}

void HttpConnection::StartTimer() {
  timer_runs_ = true;
  timer_.expires_at(phase_end_);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const std::shared_ptr<HttpConnection> self = weak.lock();
    if (error || self == nullptr || self->timer_.expiry() > Clock::now()) return;  // it was started again
    self->timer_runs_ = false;
    if (self->phase_end_ == Clock::time_point::max()) return;
    if (self->phase_end_ > Clock::now()) return self->StartTimer();
    if (!self->receiving_) return self->Close();
    self->timed_out_ = true;
    self->changed_.cancel();
  });
}

void HttpConnection::EndPhase() {
  phase_end_ = Clock::time_point::max();
  LeaveEvictable();
}

void HttpConnection::Close() {
  if (!std::exchange(is_open_, false)) return;
  shared_.all.erase(this);
  if (const auto of_it = shared_.of_address.find(address_); --of_it->second == 0) shared_.of_address.erase(of_it);
  shared_.ReportConnections();
  LeaveEvictable();
  timer_.cancel();
  changed_.cancel();
  room_.cancel();
  stream_.Close();
}

void HttpConnection::ThrowClosed() { throw boost::system::system_error(asio::error::operation_aborted); }

awaitable<void> HttpConnection::Turn() {
  if (!shared_.turns.Begin(address_)) co_await shared_.turns.Wait(address_);
  if (!is_open_) ThrowClosed();
}

awaitable<void> HttpConnection::Change(absl::Duration limit) {
  if (!is_open_) ThrowClosed();
  error_code ignored;
  if (limit == absl::InfiniteDuration()) {
    changed_.expires_at(std::chrono::steady_clock::time_point::max());
  } else {
    changed_.expires_after(absl::ToChronoNanoseconds(limit));
  }
  co_await changed_.async_wait(redirect_error(use_awaitable, ignored));
  if (!is_open_) ThrowClosed();
}

void HttpConnection::ReadCertificate() {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(stream_.tls()), X509_free);
  has_certificate_ = certificate != nullptr;
  if (has_certificate_) certificate_ = CredentialsOf(*certificate);
}

awaitable<void> HttpConnection::ReadAhead() {
  try {
    while (is_open_) {
      if (lingers_) {
        at_end_ = !co_await stream_.Discard();
        changed_.cancel();
        if (at_end_) co_return;
        co_await Turn();  // otherwise others would wait for as long as more comes
      } else if (const size_t most = ReadAheadBytes(); received_.size() < most) {
        at_end_ = !co_await stream_.Read(received_, most);
        changed_.cancel();
        if (at_end_) co_return;
      } else {
        error_code ignored;
        co_await room_.async_wait(redirect_error(use_awaitable, ignored));
      }
    }
  } catch (const boost::system::system_error&) {
    Close();
  } catch (const std::exception& error) {
    shared_.ReportFailure(error.what());
    Close();
  }
}

void HttpConnection::Consume(size_t bytes) {
  received_.erase(0, bytes);
  if (received_.empty()) std::string().swap(received_);
  if (bytes > 0) room_.cancel();
}

awaitable<void> HttpConnection::Send(std::string_view head, std::string_view body) {
  constexpr size_t kCopied = 8 << 10;  // more would take memory while the client does not read
  std::string first(head);
  std::string_view rest = body;
  if (body.size() <= kCopied) first.append(std::exchange(rest, ""));
  std::string_view slice = first;
  while (true) {
    BeginPhase(shared_.limits.answer);
    co_await stream_.Write(slice);
    if (rest.empty()) co_return;
    slice = rest.substr(0, kSliceBytes);
    rest.remove_prefix(slice.size());
    co_await Turn();
  }
}

awaitable<void> HttpConnection::Linger() {
  BeginPhase(kLinger);
  lingers_ = true;
  co_await stream_.ShutDown();
  while (!at_end_) {
    Consume(received_.size());
    co_await Change();
  }
}

void HttpConnection::Start() {
  BeginPhase(shared_.limits.request);  // at once, so that a new connection may take its place
  asio::co_spawn(
      timer_.get_executor(), [keep = shared_from_this()] { return keep->Serve(); }, asio::detached);
}

awaitable<void> HttpConnection::Serve() {
  const std::shared_ptr<HttpConnection> keep = shared_from_this();
  try {
    co_await Turn();
    co_await stream_.Handshake([this](absl::AnyInvocable<void()> task) {
      shared_.handshakes->Submit({.client = address(), .cost = kHandshakeTime}, core::FairPool::Timed(std::move(task)));
    });
    if (stream_.tls() != nullptr) ReadCertificate();
    asio::co_spawn(
        timer_.get_executor(), [keep]() { return keep->ReadAhead(); }, asio::detached);
    while (co_await ServeNext()) BeginPhase(shared_.limits.idle);
    co_await Linger();
  } catch (const boost::system::system_error&) {
    // The client left, a phase took too long, or the connection made room for another one.
  } catch (const std::exception& error) {  // nothing would end the connection otherwise
    shared_.ReportFailure(error.what());
  }
  Close();
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->End();
}

}  // namespace longshort::server
