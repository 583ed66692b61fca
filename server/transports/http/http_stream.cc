#include "server/transports/http/http_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace longshort::server {
namespace {

using boost::asio::awaitable;
using boost::asio::use_awaitable;
using boost::system::system_error;

constexpr size_t kFirstRead = 2 << 10;
// The largest message of a handshake. OpenSSL's own limits are 128 KiB for a ClientHello, before anything is known of
// the client, and 100 KB for its certificates.
constexpr uint32_t kMaxHandshakeMessage = 16 << 10;

// At least kFirstRead bytes more, but not beyond `max` as std::string::reserve does.
void MakeRoom(std::string& text, size_t max) {
  if (text.size() + kFirstRead <= text.capacity() || text.capacity() >= max) return;
  std::string larger;
  larger.reserve(std::min(max, std::max(text.size() + kFirstRead, 2 * text.capacity())));
  larger.append(text);
  text.swap(larger);
}

// Answers a request that came without TLS, as far as the system takes the answer at once.
void RefuseWithoutTls(int socket) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
      "this port uses TLS; the address must begin with https://\n";
  send(socket, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(socket, SHUT_WR);
  // With unread bytes, the close would reset the connection before the client reads the answer.
  constexpr size_t kRequest = 64 << 10;
  recv(socket, nullptr, kRequest, MSG_TRUNC | MSG_DONTWAIT);
}

}  // namespace

void HttpStream::CountProtocolMessage(int is_sent, int /*version*/, int content_type, const void* /*bytes*/,
                                      size_t /*size*/, SSL* /*tls*/, void* stream) {
  if (is_sent == 0 && content_type == SSL3_RT_HANDSHAKE) ++static_cast<HttpStream*>(stream)->protocol_messages_;
}

bool HttpStream::PlainHandshake::Take(std::string_view bytes, bool before_13) {
  constexpr int kRecordHead = 5, kMessageHead = 4;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (is_over_) return true;
    if (record_left_ == 0) {
      record_head_ = record_head_ << 8 | value;
      if (++record_head_size_ < kRecordHead) continue;
      record_head_size_ = 0;
      record_left_ = record_head_ & 0xffff;
      const auto type = static_cast<int>(record_head_ >> 32 & 0xff);
      is_handshake_ = type == SSL3_RT_HANDSHAKE;
      // Another type is no TLS: the hello of SSL 2, which is short, or what OpenSSL refuses.
      is_over_ = type < SSL3_RT_CHANGE_CIPHER_SPEC || type > SSL3_RT_APPLICATION_DATA ||
                 (type == SSL3_RT_CHANGE_CIPHER_SPEC && before_13);
      continue;
    }
    --record_left_;
    if (!is_handshake_) continue;
    if (message_left_ > 0) {
      --message_left_;
      continue;
    }
    message_head_ = message_head_ << 8 | value;
    if (++message_head_size_ < kMessageHead) continue;
    message_head_size_ = 0;
    message_left_ = message_head_ & 0xffffff;
    if (message_left_ > kMaxHandshakeMessage) return false;
  }
  return true;
}

long HttpStream::WatchHandshake(BIO* socket, int operation, const char* bytes, size_t /*size*/, int /*argument*/,
                                long /*long_argument*/, int result, size_t* processed) {
  if (operation != (BIO_CB_READ | BIO_CB_RETURN) || result <= 0) return result;
  auto* const self = reinterpret_cast<HttpStream*>(BIO_get_callback_arg(socket));
  const bool before_13 = SSL_version(self->tls_.get()) < TLS1_3_VERSION;
  return self->handshake_.Take({bytes, *processed}, before_13) ? result : -1;
}

HttpStream::HttpStream(HttpSocket socket, SSL_CTX* tls) : socket_(std::move(socket)), tls_(nullptr, SSL_free) {
  socket_.non_blocking(true);
  if (tls == nullptr) return;
  tls_.reset(SSL_new(tls));
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), socket_.native_handle()) != 1) {
    throw system_error(boost::asio::error::no_memory);
  }
  SSL_set_mode(tls_.get(),
               SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_options(tls_.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);  // lengths and chunks say where a request ends
  // Otherwise OpenSSL would read messages of the protocol, such as new keys, for as long as they come.
  SSL_clear_mode(tls_.get(), SSL_MODE_AUTO_RETRY);
  SSL_set_msg_callback(tls_.get(), CountProtocolMessage);
  SSL_set_msg_callback_arg(tls_.get(), this);
  SSL_set_max_cert_list(tls_.get(), kMaxHandshakeMessage);
  BIO_set_callback_arg(SSL_get_rbio(tls_.get()), reinterpret_cast<char*>(this));
  BIO_set_callback_ex(SSL_get_rbio(tls_.get()), WatchHandshake);
}

void HttpStream::BeginAttempt() {
  // The system may have given the descriptor's number to another connection.
  if (is_closed_) throw system_error(boost::asio::error::operation_aborted);
  if (tls_ != nullptr) ERR_clear_error();
}

HttpStream::Attempt HttpStream::Judge(ssize_t result, HttpSocket::wait_type wait) {
  constexpr int kMaxProtocolMessages = 64;  // of a handshake, or between two reads
  if (result > 0 || protocol_messages_ > kMaxProtocolMessages) {
    const int messages = std::exchange(protocol_messages_, 0);
    if (messages > kMaxProtocolMessages) throw system_error(boost::asio::error::connection_reset);
    return {.count = static_cast<size_t>(result)};
  }
  if (tls_ == nullptr) {
    if (result == 0) return {.at_end = true};
    if (errno == EAGAIN || errno == EINTR) return {.wait = wait};
    throw system_error(errno, boost::system::system_category());
  }
  switch (SSL_get_error(tls_.get(), static_cast<int>(result))) {
    case SSL_ERROR_WANT_READ:
      return {.wait = HttpSocket::wait_read};
    case SSL_ERROR_WANT_WRITE:
      return {.wait = HttpSocket::wait_write};
    case SSL_ERROR_ZERO_RETURN:
      return {.at_end = true};
    default:
      throw system_error(boost::asio::error::connection_reset);
  }
}

HttpStream::Attempt HttpStream::TryRead(char* into, size_t max) {
  BeginAttempt();
  return Judge(
      tls_ == nullptr ? recv(socket_.native_handle(), into, max, 0) : SSL_read(tls_.get(), into, static_cast<int>(max)),
      HttpSocket::wait_read);
}

HttpStream::Attempt HttpStream::TryWrite(std::string_view bytes) {
  BeginAttempt();
  return Judge(tls_ == nullptr ? send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
                               : SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())),
               HttpSocket::wait_write);
}

awaitable<HttpStream::Attempt> HttpStream::TryHandshake(const Runner& run) {
  Attempt attempt;
  in_handshake_task_ = true;
  const absl::Cleanup back = [this] {
    in_handshake_task_ = false;
    if (is_closed_) Close();
  };
  const auto begin = [this, &run, &attempt](auto&& handler) {
    run([this, &attempt, handler = std::forward<decltype(handler)>(handler)]() mutable {
      std::exception_ptr error;
      try {
        BeginAttempt();
        attempt = Judge(SSL_accept(tls_.get()), HttpSocket::wait_read);
      } catch (const system_error&) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST) RefuseWithoutTls(socket_.native_handle());
        error = std::current_exception();
      }
      boost::asio::post(socket_.get_executor(), [handler = std::move(handler), error]() mutable { handler(error); });
    });
  };
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(std::exception_ptr)>(begin,
                                                                                                       use_awaitable);
  co_return attempt;
}

awaitable<void> HttpStream::Handshake(Runner run) {
  for (Attempt attempt; tls_ != nullptr && attempt.count == 0;) {
    co_await socket_.async_wait(attempt.wait, use_awaitable);
    attempt = co_await TryHandshake(run);
    if (attempt.at_end) throw system_error(boost::asio::error::eof);
  }
  if (tls_ != nullptr) BIO_set_callback_ex(SSL_get_rbio(tls_.get()), nullptr);
}

awaitable<bool> HttpStream::Read(std::string& into, size_t max) {
  bool any = false;
  while (true) {
    // Another attempt would find nothing. OpenSSL may have more than the socket.
    if (std::exchange(is_drained_, false)) {
      if (into.empty()) std::string().swap(into);
      co_await socket_.async_wait(HttpSocket::wait_read, use_awaitable);
    }
    const size_t size = into.size();
    MakeRoom(into, max);
    into.resize(std::min(max, into.capacity()));
    const size_t room = into.size() - size;
    const Attempt attempt = TryRead(&into[size], room);
    into.resize(size + attempt.count);
    any |= attempt.count > 0;
    if (attempt.count == room && into.size() < max) continue;  // there may be more
    is_drained_ = tls_ == nullptr && attempt.count < room && !attempt.at_end;
    if (any) co_return true;
    if (attempt.at_end) co_return false;
    if (is_drained_) continue;
    if (into.empty()) std::string().swap(into);
    co_await socket_.async_wait(attempt.wait, use_awaitable);
  }
}

awaitable<bool> HttpStream::Discard() {
  constexpr size_t kAtOnce = 1 << 20, kWithCopy = 16 << 10;
  std::string copy;
  while (true) {
    BeginAttempt();
    const bool is_tcp = tls_ == nullptr && socket_.local_endpoint().protocol().family() != AF_UNIX;
    Attempt attempt;
    if (is_tcp) {
      attempt = Judge(recv(socket_.native_handle(), nullptr, kAtOnce, MSG_TRUNC), HttpSocket::wait_read);
    } else {
      copy.resize(kWithCopy);
      attempt = TryRead(copy.data(), copy.size());
    }
    if (attempt.count > 0 || attempt.at_end) co_return attempt.count > 0;
    std::string().swap(copy);
    co_await socket_.async_wait(attempt.wait, use_awaitable);
  }
}

awaitable<void> HttpStream::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const Attempt attempt = TryWrite(bytes);
    bytes.remove_prefix(attempt.count);
    if (attempt.count == 0) co_await socket_.async_wait(attempt.wait, use_awaitable);
  }
}

awaitable<void> HttpStream::ShutDown() {
  while (tls_ != nullptr && SSL_get_shutdown(tls_.get()) < SSL_SENT_SHUTDOWN + SSL_RECEIVED_SHUTDOWN) {
    BeginAttempt();
    const int result = SSL_shutdown(tls_.get());
    if (result >= 0 || SSL_get_error(tls_.get(), result) != SSL_ERROR_WANT_WRITE) break;
    co_await socket_.async_wait(HttpSocket::wait_write, use_awaitable);
  }
  boost::system::error_code ignored;
  static_cast<void>(socket_.shutdown(HttpSocket::shutdown_send, ignored));
}

void HttpStream::Close() {
  is_closed_ = true;
  boost::system::error_code ignored;
  if (in_handshake_task_) {
    static_cast<void>(socket_.shutdown(HttpSocket::shutdown_both, ignored));
  } else {
    static_cast<void>(socket_.close(ignored));
  }
}

HttpStream::State HttpStream::Look() {
  pollfd one{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  if (poll(&one, 1, 0) <= 0) return State::kOpen;
  return (one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 ? State::kGone : State::kEnded;
}

}  // namespace longshort::server
