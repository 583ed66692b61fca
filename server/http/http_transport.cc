#include "server/http/http_transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace longshort {
namespace {

class PlainTransport final : public HttpTransport {
 public:
  explicit PlainTransport(int socket) : socket_(socket) {}

  int64_t Read(char* bytes, size_t most) override {
    const ssize_t read = recv(socket_, bytes, most, 0);
    if (read == 0) return -1;
    return read > 0 ? read : WaitFor(POLLIN);
  }
  int64_t Write(const char* bytes, size_t count) override {
    const ssize_t written = send(socket_, bytes, count, MSG_NOSIGNAL);
    return written >= 0 ? written : WaitFor(POLLOUT);
  }
  void EndWriting() override { shutdown(socket_, SHUT_WR); }

 private:
  int64_t WaitFor(short event) {
    wait_for_ = event;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
  }

  const int socket_;
};

// Shakes hands as it reads and writes.
class TlsTransport final : public HttpTransport {
 public:
  explicit TlsTransport(SSL* tls) : tls_(tls) {}
  ~TlsTransport() override {
    SSL_free(tls_);
    ERR_clear_error();
  }

  int64_t Read(char* bytes, size_t most) override {
    ERR_clear_error();
    return ResultOf(SSL_read(tls_, bytes, Int(most)));
  }
  int64_t Write(const char* bytes, size_t count) override {
    ERR_clear_error();
    return ResultOf(SSL_write(tls_, bytes, Int(count)));
  }
  void EndWriting() override {
    SSL_shutdown(tls_);
    shutdown(SSL_get_fd(tls_), SHUT_WR);
  }

 private:
  static int Int(size_t count) { return static_cast<int>(std::min<size_t>(count, std::numeric_limits<int>::max())); }
  int64_t ResultOf(int result) {
    if (result > 0) return result;
    const int error = SSL_get_error(tls_, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return -1;
    wait_for_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return 0;
  }

  SSL* const tls_;
};

}  // namespace

std::unique_ptr<HttpTransport> MakeHttpTransport(int socket, SSL_CTX* tls) {
  if (tls == nullptr) return std::make_unique<PlainTransport>(socket);
  SSL* const connection = SSL_new(tls);
  if (connection == nullptr || SSL_set_fd(connection, socket) != 1) {
    SSL_free(connection);
    return nullptr;
  }
  SSL_set_accept_state(connection);
  SSL_set_mode(connection, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return std::make_unique<TlsTransport>(connection);
}

}  // namespace longshort
