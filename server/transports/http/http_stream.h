// The bytes of one client, with TLS or without. While it waits it holds no buffer of its own.
//
// OpenSSL works on the socket itself: Boost's ssl::stream would hold 68 KiB for each connection.
//
// Thread: the server's I/O thread. The coroutines throw boost::system::system_error if the client is gone, or the
// socket was closed. One may read while another one writes.
#pragma once

// clang-format off
#include <utility>  // Boost 1.74's awaitable.hpp needs it
// clang-format on
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"

// OpenSSL's.
struct bio_st;
struct ssl_st;
struct ssl_ctx_st;

namespace longshort::server {

// A TCP or Unix socket.
using HttpSocket = boost::asio::generic::stream_protocol::socket;

class HttpStream final {
 public:
  // `tls`: null for plain HTTP. With TLS the process must ignore SIGPIPE.
  HttpStream(HttpSocket socket, ssl_ctx_st* tls);
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  HttpSocket& socket() { return socket_; }
  // Null without TLS.
  ssl_st* tls() { return tls_.get(); }

  // Runs a task once, on any thread.
  using Runner = std::function<void(absl::AnyInvocable<void()> task)>;
  // Does nothing without TLS. The arithmetic, up to milliseconds, is done by tasks that `run` gets, one at a time.
  boost::asio::awaitable<void> Handshake(Runner run);
  // Waits for bytes, and appends what is there until `into` has `max` bytes. Returns false if the client sends nothing
  // more. An empty `into` gives its memory back before the wait, during which others may remove bytes from it.
  // REQUIRES: `into` has fewer than `max` bytes.
  boost::asio::awaitable<bool> Read(std::string& into, size_t max);
  // Waits for bytes, and drops what is there. Returns as Read.
  boost::asio::awaitable<bool> Discard();
  boost::asio::awaitable<void> Write(std::string_view bytes);
  // Ends the bytes that go to the client: nothing more is sent.
  boost::asio::awaitable<void> ShutDown();
  // Whether the client has closed its side (kEnded), or the whole connection (kGone), whatever is still to be read.
  enum class State { kOpen, kEnded, kGone };
  State Look();
  // Pending operations end with an error.
  void Close();

 private:
  // What an attempt did: bytes, or what it waits for.
  struct Attempt {
    size_t count = 0;
    HttpSocket::wait_type wait = HttpSocket::wait_read;
    bool at_end = false;
  };
  // The lengths in a client's handshake as long as it is not encrypted. OpenSSL allocates what a message announces.
  class PlainHandshake {
   public:
    // Takes the next bytes. `before_13`: whether the version is before TLS 1.3, where what follows a ChangeCipherSpec
    // is encrypted. Returns false if a message is too long.
    bool Take(std::string_view bytes, bool before_13);

   private:
    uint64_t record_head_ = 0;
    int record_head_size_ = 0;
    uint64_t record_left_ = 0;
    bool is_handshake_ = false;
    uint32_t message_head_ = 0;
    int message_head_size_ = 0;
    uint32_t message_left_ = 0;
    bool is_over_ = false;
  };
  // OpenSSL calls it with each message that is no data of HTTP.
  static void CountProtocolMessage(int is_sent, int version, int content_type, const void* bytes, size_t size,
                                   ssl_st* tls, void* stream);
  // OpenSSL calls it with what it has read of the socket during the handshake.
  static long WatchHandshake(bio_st* socket, int operation, const char* bytes, size_t size, int argument,
                             long long_argument, int result, size_t* processed);
  void BeginAttempt();
  Attempt TryRead(char* into, size_t max);
  Attempt TryWrite(std::string_view bytes);
  boost::asio::awaitable<Attempt> TryHandshake(const Runner& run);
  // Classifies `result`, which an operation of the socket or of OpenSSL returned.
  Attempt Judge(ssize_t result, HttpSocket::wait_type wait);

  HttpSocket socket_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  bool is_drained_ = false;  // the last attempt to read found less than it asked for
  // A task of the handshake uses the socket, so the system must not give its number to another connection.
  bool in_handshake_task_ = false;
  std::atomic<bool> is_closed_ = false;
  int protocol_messages_ = 0;  // of TLS, since the last bytes
  PlainHandshake handshake_;
};

}  // namespace longshort::server
