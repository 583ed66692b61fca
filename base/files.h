// Files: read when they are asked for or at once, files of secrets, and written so that a reader finds the old content
// or the new, never a part.
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

// Bytes that are read when they are asked for: a file's, which stays open, or memory's.
//
// While it is read, a file can be truncated, overwritten, or lost with its disk or network. Read then returns an error;
// a memory mapping would end the process. A file that another one replaces by a rename stays readable as it was.
//
// Thread: immutable, so any thread may read.
class StoredBytes final {
 public:
  // Errors: NOT_FOUND, PERMISSION_DENIED, ... from the system, UNAVAILABLE where it has no better word;
  // INVALID_ARGUMENT if `path` is no regular file. All name `path`. Where reading takes long, `stop_requested`, if
  // there is one, is asked every few megabytes whether it is to end.
  static absl::StatusOr<StoredBytes> OpenFile(const std::string& path, std::function<bool()> stop_requested = {});
  // `bytes` must outlive the result.
  static StoredBytes InMemory(absl::Span<const std::byte> bytes);

  StoredBytes(StoredBytes&& other) noexcept { *this = std::move(other); }
  StoredBytes& operator=(StoredBytes&& other) noexcept;
  ~StoredBytes();

  int64_t size() const { return size_; }

  // Reads all of `to`, from byte `offset` on. REQUIRES: 0 <= offset, offset + to.size() <= size().
  // Errors: UNAVAILABLE naming the file if it cannot be read, or has become shorter; CANCELLED after a stop.
  absl::Status Read(int64_t offset, absl::Span<std::byte> to) const;

  // Errors: CANCELLED after a stop.
  absl::Status CheckStop() const;

  // Errors: UNAVAILABLE naming the file if it was written to since it was opened: what was read may be of before and of
  // after.
  absl::Status CheckUnchanged() const;

 private:
  StoredBytes() = default;

  int64_t size_ = 0;
  absl::Span<const std::byte> memory_;
  std::string path_;
  int descriptor_ = -1;  // of a file
  absl::Time written_;   // as the file system says
  std::function<bool()> stop_requested_;
};

// Reads a whole text file of at most `limit_bytes`.
// Errors: those of StoredBytes; INVALID_ARGUMENT naming the file, its size and the limit.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes);
// The same for a file that may be absent. A link to nothing is an error, since a file is expected there: UNAVAILABLE,
// naming it.
absl::StatusOr<std::optional<std::string>> ReadOptionalTextFile(const std::string& path, size_t limit_bytes);

// Reads the whole file, which `option` ("--tls-key") has named. Errors: INVALID_ARGUMENT that begins with
// "--OPTION=FILE ", if it cannot be read, has more than `limit_bytes`, or users other than its owner and group may use
// it.
absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes);

// Writes `pieces`, one after the other, to a temporary file beside `path`, flushes it to disk, and renames it to
// `path`. On an error `path` is as it was and no temporary file is left. Errors: the system's, naming the file.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const std::string_view> pieces);

}  // namespace longshort
