// Files: random access, whole text files, files of secrets, and atomic writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace longshort {

// The bytes of an open file or of memory, for random access.
//
// A file can be truncated or overwritten while it is read, or its disk or network can fail. Read then returns an error;
// a memory mapping would end the process. If a rename replaces the file, its old content stays readable.
//
// Immutable, hence thread-safe.
class StoredBytes final {
 public:
  // Long reads call `stop_requested`, unless it is null, every few megabytes, and stop if it returns true.
  // Errors: NOT_FOUND, PERMISSION_DENIED, ... from the system, UNAVAILABLE if no other code fits; INVALID_ARGUMENT if
  // `path` is not a regular file. All name `path`.
  static absl::StatusOr<StoredBytes> OpenFile(const std::string& path, std::function<bool()> stop_requested = {});
  // `bytes` must outlive the result.
  static StoredBytes InMemory(absl::Span<const std::byte> bytes);

  StoredBytes(StoredBytes&& other) noexcept { *this = std::move(other); }
  StoredBytes& operator=(StoredBytes&& other) noexcept;
  ~StoredBytes();

  int64_t size() const { return size_; }
  // Whether users other than the file's owner and group have access to it.
  bool is_open_to_others() const { return is_open_to_others_; }

  // Fills `to` with the bytes from `offset` on. REQUIRES: 0 <= offset, offset + to.size() <= size().
  // Errors: UNAVAILABLE naming the file if it cannot be read or has been truncated; CANCELLED after a stop.
  absl::Status Read(int64_t offset, absl::Span<std::byte> to) const;

  // Errors: CANCELLED after a stop.
  absl::Status CheckStop() const;

  // Errors: UNAVAILABLE naming the file if it was modified since it was opened. The bytes read may then mix old and
  // new.
  absl::Status CheckUnchanged() const;

 private:
  StoredBytes() = default;

  int64_t size_ = 0;
  absl::Span<const std::byte> memory_;
  std::string path_;
  int descriptor_ = -1;  // the open file, or -1
  absl::Time written_;   // the file's modification time
  bool is_open_to_others_ = false;
  std::function<bool()> stop_requested_;
};

// Reads a whole text file of at most `limit_bytes`.
// Errors: those of StoredBytes; INVALID_ARGUMENT naming the file, its size and the limit.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes);
// Like ReadTextFile, but returns nullopt if the file does not exist. A dangling symbolic link is an error (UNAVAILABLE
// naming it), because a file is expected there.
absl::StatusOr<std::optional<std::string>> ReadOptionalTextFile(const std::string& path, size_t limit_bytes);

// Reads the whole file, which the option `option` ("--tls-key") names.
// Errors: INVALID_ARGUMENT that begins with "--OPTION=FILE ", if the file cannot be read, is larger than `limit_bytes`,
// or is accessible to users other than its owner and group.
absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes);

// Writes `pieces` in order to a temporary file next to `path`, flushes it to disk, and renames it to `path`. A reader
// finds the old content or the new, never a part. After an error, `path` is unchanged and no temporary file is left.
// Errors: those of the system, naming the file.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const std::string_view> pieces);

}  // namespace longshort
