#include "server/transports/grpc_1_51/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace longshort::server {
namespace {

absl::Status Failed() {
  return absl::UnavailableError(absl::StrCat("in-memory file: ", std::system_category().message(errno)));
}

bool WriteAll(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create() {
  const int descriptor = memfd_create("longshort", MFD_CLOEXEC);
  if (descriptor < 0) return Failed();
  MemoryFile file(descriptor);
  if (access(file.path().c_str(), R_OK) != 0) {
    return absl::UnavailableError(absl::StrCat("an in-memory file is not at ", file.path(),
                                               "; TLS needs /proc: ", std::system_category().message(errno)));
  }
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), writes_(other.writes_) {}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

absl::Status MemoryFile::Write(std::string_view content) {
  const int written = memfd_create("longshort", MFD_CLOEXEC);
  if (written < 0) return Failed();
  const absl::Cleanup close_written = [written] { close(written); };
  const timespec time = {.tv_sec = ++writes_, .tv_nsec = 0};
  const timespec times[] = {time, time};
  if (!WriteAll(written, content) || futimens(written, times) != 0) return Failed();
  // Atomically replaces the file under the old number. A reader that has opened the old file reads it to its end.
  return dup3(written, descriptor_, O_CLOEXEC) < 0 ? Failed() : absl::OkStatus();
}

}  // namespace longshort::server
