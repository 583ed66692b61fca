#include "models/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

absl::StatusOr<int> OpenForReading(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot open", path));
  return descriptor;
}

absl::StatusOr<size_t> BytesOfRegularFile(int descriptor, const std::string& path) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot stat", path));
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(absl::StrFormat("%s: not a regular file", path));
  return static_cast<size_t>(status.st_size);
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  LS_ASSIGN_OR_RETURN(const int descriptor, OpenForReading(path));
  const absl::Cleanup close_descriptor = [descriptor] { close(descriptor); };
  LS_ASSIGN_OR_RETURN(const size_t size, BytesOfRegularFile(descriptor, path));
  if (size == 0) return MappedFile();

  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot map %d bytes", path, size));
  return MappedFile(absl::MakeConstSpan(static_cast<const std::byte*>(address), size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes) {
  LS_ASSIGN_OR_RETURN(const int descriptor, OpenForReading(path));
  const absl::Cleanup close_descriptor = [descriptor] { close(descriptor); };
  LS_ASSIGN_OR_RETURN(const size_t size, BytesOfRegularFile(descriptor, path));
  if (size > limit_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %d bytes, the limit is %d", path, size, limit_bytes));
  }
  std::string text(size, '\0');
  size_t length = 0;
  while (length < size) {
    const ssize_t count = read(descriptor, text.data() + length, size - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot read", path));
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  text.resize(length);
  return text;
}

}  // namespace longshort
