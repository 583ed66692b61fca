// The file of a Unix socket that this process listens on.
//
// A socket's file stays when its process is killed, and nothing can be bound to it then. The lock file beside it
// (PATH.lock) distinguishes such a file from that of a running server, which may not listen yet. The system releases
// the lock when the process ends.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

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

}  // namespace longshort::server
