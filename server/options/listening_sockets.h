// The address to listen on, the sockets that listen there, and the file of a Unix socket.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// A file descriptor, closed with the object.
class Descriptor final {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int number() const { return number_; }
  // The caller becomes responsible for closing it.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Its owner and its group may connect: a sidecar is often another user of the same group.
inline constexpr int64_t kDefaultSocketMode = 0660;

// The file of a Unix socket that this process listens on.
//
// A socket's file stays when its process is killed, and nothing can be bound to it then. The lock file beside it
// (PATH.lock) distinguishes such a file from that of a running server, which may not listen yet. The system releases
// the lock when the process ends.
class SocketFile final {
 public:
  // Binds `socket` to `path`, in place of a file that a killed process has left, and sets the file's mode. Connections
  // are refused until the socket listens. Errors: UNAVAILABLE saying why not: another process has the socket, the path
  // is another kind of file, or an error of the system.
  static absl::StatusOr<std::unique_ptr<SocketFile>> Bind(int socket, const std::string& path, int64_t mode);
  // Removes both files.
  ~SocketFile();
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;

 private:
  SocketFile(std::string path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const Descriptor lock_;
  bool is_bound_ = false;
};

// A host name or address, and a port (0 lets the system choose); or the path of a Unix socket.
struct ListenAddress {
  std::string host;
  int port = 0;
  std::string path = {};  // of a Unix socket, which has no host and no port; otherwise empty

  bool is_unix() const { return !path.empty(); }
  // "host:port", where an IPv6 host is in brackets, or "unix:/path".
  std::string ToString() const;
};

// Parses "host:port", "[ipv6]:port" or "unix:/path". Errors: INVALID_ARGUMENT saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Checks that only this machine can reach the address of --`option`: its host resolves only to loopback addresses.
// Errors: INVALID_ARGUMENT naming the option, the address, and what to do; also if the host cannot be resolved.
absl::Status CheckIsLoopback(const char* option, const ListenAddress& address);

// The local port of a socket; 0 if it has none.
int PortOf(int socket);
// The local path of a Unix socket; empty if it has none.
std::string PathOf(int socket);

struct ListeningSockets {
  // Non-blocking; one for each address that the host resolves to.
  std::vector<Descriptor> sockets;
  int port = 0;
  std::unique_ptr<SocketFile> file = nullptr;  // of a Unix socket
};

// `option`, without dashes, names the address in errors.
struct NamedAddress {
  std::string option;
  ListenAddress address;
};

// Whether accept failed with this errno because the process or the system cannot make another socket now. Other errors
// concern only one connection.
bool IsOutOfDescriptors(int error);

absl::Status CannotBind(const NamedAddress& name, const std::string& why);

// Binds all addresses that the host resolves to; connections are refused until Listen. "[::]" is any IPv4 or IPv6
// address, "0.0.0.0" any IPv4 address. A Unix socket gets the file mode `mode`. Errors: UNAVAILABLE if none can be
// bound, or one of them is in use.
absl::StatusOr<ListeningSockets> BindSockets(const NamedAddress& name, int64_t mode = kDefaultSocketMode);

// Starts to listen: the system queues connections until they are accepted. Errors: UNAVAILABLE if another process has
// begun to listen on one of the addresses.
absl::Status Listen(const NamedAddress& name, const ListeningSockets& listening);

}  // namespace longshort::server
