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

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot open", path));
  const absl::Cleanup close_descriptor = [descriptor] { close(descriptor); };

  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot stat", path));
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(absl::StrFormat("%s: not a regular file", path));
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile();

  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot map %d bytes", path, size));
  return MappedFile(absl::MakeConstSpan(static_cast<const std::byte*>(address), size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes) {
  LS_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > limit_bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %d bytes, the limit is %d", path, file.bytes().size(), limit_bytes));
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace longshort
