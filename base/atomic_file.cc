#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

absl::Status WriteAll(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot write", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteAndClose(int descriptor, absl::Span<const std::string_view> pieces, const std::string& path) {
  absl::Status status;
  for (const std::string_view piece : pieces) {
    if (status.ok()) status = WriteAll(descriptor, piece, path);
  }
  if (status.ok() && fsync(descriptor) != 0)
    status = absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot flush", path));
  if (close(descriptor) != 0 && status.ok()) {
    status = absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot close", path));
  }
  return status;
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, absl::Span<const std::string_view> pieces) {
  const std::string temporary = absl::StrFormat("%s.partial.%d", path, getpid());
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot create", temporary));

  absl::Status status = WriteAndClose(descriptor, pieces, temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot rename %s to it", path, temporary));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace longshort
