#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

// Maps errors of disks and networks, which have no code of their own and may be transient, to UNAVAILABLE.
absl::Status SystemError(int number, const std::string& message) {
  absl::Status status = absl::ErrnoToStatus(number, message);
  return status.code() == absl::StatusCode::kUnknown ? absl::UnavailableError(status.message()) : status;
}

struct FileState {
  int64_t bytes = 0;
  absl::Time written;
  bool is_open_to_others = false;
};

absl::StatusOr<FileState> StateOf(int descriptor, const std::string& path) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return SystemError(errno, absl::StrFormat("%s: cannot stat", path));
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(absl::StrFormat("%s: not a regular file", path));
  return FileState{.bytes = status.st_size,
                   .written = absl::TimeFromTimespec(status.st_mtim),
                   .is_open_to_others = (status.st_mode & S_IRWXO) != 0};
}

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

absl::StatusOr<std::string> ReadText(const StoredBytes& file, const std::string& path, size_t limit_bytes) {
  const auto size = static_cast<size_t>(file.size());
  if (size > limit_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %d bytes; the limit is %d", path, size, limit_bytes));
  }
  std::string text(size, '\0');
  LS_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), size)));
  return text;
}

}  // namespace

absl::StatusOr<StoredBytes> StoredBytes::OpenFile(const std::string& path, std::function<bool()> stop_requested) {
  StoredBytes file;
  file.path_ = path;
  file.stop_requested_ = std::move(stop_requested);
  // O_NONBLOCK: opening a pipe does not wait for its writer.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return SystemError(errno, absl::StrFormat("%s: cannot open", path));
  LS_ASSIGN_OR_RETURN(const FileState state, StateOf(file.descriptor_, path));
  file.size_ = state.bytes;
  file.written_ = state.written;
  file.is_open_to_others_ = state.is_open_to_others;
  return file;
}

StoredBytes StoredBytes::InMemory(absl::Span<const std::byte> bytes) {
  StoredBytes stored;
  stored.size_ = static_cast<int64_t>(bytes.size());
  stored.memory_ = bytes;
  return stored;
}

StoredBytes& StoredBytes::operator=(StoredBytes&& other) noexcept {
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(written_, other.written_);
  std::swap(is_open_to_others_, other.is_open_to_others_);
  std::swap(stop_requested_, other.stop_requested_);
  return *this;
}

StoredBytes::~StoredBytes() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status StoredBytes::Read(int64_t offset, absl::Span<std::byte> to) const {
  if (to.empty()) return absl::OkStatus();
  if (descriptor_ < 0) {
    std::memcpy(to.data(), memory_.data() + offset, to.size());
    return absl::OkStatus();
  }
  while (!to.empty()) {
    LS_RETURN_IF_ERROR(CheckStop());
    const ssize_t count = pread(descriptor_, to.data(), std::min(to.size(), kPieceBytes), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::UnavailableError(absl::ErrnoToStatus(errno, absl::StrFormat("%s: cannot read", path_)).message());
    }
    if (count == 0) {
      return absl::UnavailableError(absl::StrFormat("%s: cut short while it was read; it had %d bytes", path_, size_));
    }
    offset += count;
    to.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status StoredBytes::CheckStop() const {
  if (stop_requested_ == nullptr || !stop_requested_()) return absl::OkStatus();
  return absl::CancelledError(absl::StrFormat("%s: asked to stop while reading it", path_));
}

absl::Status StoredBytes::CheckUnchanged() const {
  if (descriptor_ < 0) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const FileState now, StateOf(descriptor_, path_));
  if (now.bytes == size_ && now.written == written_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("%s: modified while it was read; write a new file next to it, then rename that", path_));
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes) {
  LS_ASSIGN_OR_RETURN(const StoredBytes file, StoredBytes::OpenFile(path));
  return ReadText(file, path, limit_bytes);
}

absl::StatusOr<std::optional<std::string>> ReadOptionalTextFile(const std::string& path, size_t limit_bytes) {
  absl::StatusOr<std::string> text = ReadTextFile(path, limit_bytes);
  if (text.ok()) return *std::move(text);
  if (!absl::IsNotFound(text.status())) return std::move(text).status();
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return std::nullopt;
  return absl::UnavailableError(absl::StrFormat("%s: a dangling symbolic link", path));
}

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
  const absl::StatusOr<StoredBytes> file = StoredBytes::OpenFile(path);
  if (file.ok() && file->is_open_to_others()) {
    return wrong("is accessible to all users of this machine; remove their access with chmod o=");
  }
  absl::StatusOr<std::string> text = file.ok() ? ReadText(*file, path, limit_bytes) : file.status();
  if (!text.ok()) return wrong(absl::StrCat("cannot be read: ", std::string(text.status().message())));
  return text;
}

}  // namespace longshort
