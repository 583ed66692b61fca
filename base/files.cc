#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/stored_bytes.h"

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

absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes) {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(option, "=", path, " ", what));
  };
  std::error_code error;
  const std::filesystem::perms all = std::filesystem::status(path, error).permissions();
  if (error) return wrong(absl::StrCat("cannot be read: ", error.message()));
  absl::StatusOr<std::string> text = ReadTextFile(path, limit_bytes);
  if (!text.ok()) return wrong(absl::StrCat("cannot be read: ", std::string(text.status().message())));
  if ((all & std::filesystem::perms::others_all) == std::filesystem::perms::none) return text;
  return wrong("may be used by everybody on this machine; chmod o= takes that away");
}

}  // namespace longshort
