// The bytes of one HTTP connection, with TLS or without, on a socket that does not block.
//
// Thread: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

// OpenSSL's.
struct ssl_ctx_st;

namespace longshort {

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // How many bytes were read or written; 0: none now, poll the socket for `wait_for`; less: the connection is over.
  virtual int64_t Read(char* bytes, size_t most) = 0;
  virtual int64_t Write(const char* bytes, size_t count) = 0;
  // Tells the other side that nothing more is written.
  virtual void EndWriting() = 0;
  // POLLIN or POLLOUT: what the last Read or Write waits for.
  short wait_for() const { return wait_for_; }

 protected:
  short wait_for_ = 0;
};

// `socket` is the caller's and outlives it, as `tls` does; null: no TLS. Null if OpenSSL has no memory.
std::unique_ptr<HttpTransport> MakeHttpTransport(int socket, ssl_ctx_st* tls);

}  // namespace longshort
