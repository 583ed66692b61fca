#include "server/options/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr char kInUse[] = "another process listens on it";

absl::Status SystemError(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": ", std::system_category().message(errno)));
}

std::string LockPath(const std::string& path) { return absl::StrCat(path, ".lock"); }

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// The locked file. Its owner removes it while it has the lock, so a file that was opened before may be gone.
absl::StatusOr<Descriptor> Lock(const std::string& path) {
  while (true) {
    Descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (lock.number() < 0) return SystemError(path);
    if (flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
      return errno == EWOULDBLOCK ? absl::UnavailableError(kInUse) : SystemError(path);
    }
    struct stat locked {};
    struct stat there {};
    if (fstat(lock.number(), &locked) != 0) return SystemError(path);
    if (stat(path.c_str(), &there) == 0 && there.st_ino == locked.st_ino && there.st_dev == locked.st_dev) return lock;
  }
}

// Removes a socket on which nothing listens. Other programs have no lock file, so it tries to connect.
absl::Status RemoveStale(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return errno == ENOENT ? absl::OkStatus() : SystemError(path);
  if (!S_ISSOCK(there.st_mode))
    return absl::UnavailableError("it is a file, and no socket; the server would replace it");
  const Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(path);
  const int failed = connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (failed == 0 || errno == EAGAIN) return absl::UnavailableError(kInUse);  // EAGAIN: its queue is full
  if (errno != ECONNREFUSED || unlink(path.c_str()) != 0) return SystemError(path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Bind(int socket, const std::string& path, int64_t mode) {
  LS_ASSIGN_OR_RETURN(Descriptor lock, Lock(LockPath(path)));
  std::unique_ptr<SocketFile> file(new SocketFile(path, std::move(lock)));
  LS_RETURN_IF_ERROR(RemoveStale(path));
  const sockaddr_un address = AddressOf(path);
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return SystemError(path);
  file->is_bound_ = true;
  if (chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) return SystemError(path);
  return file;
}

SocketFile::~SocketFile() {
  if (is_bound_) unlink(path_.c_str());
  unlink(LockPath(path_).c_str());
}

}  // namespace longshort::server
