// A file mapped into memory, read-only.
//
// The mapping shows the file as it is on disk: a file that is cut short while it is mapped ends the process at the next
// read of the lost part, so model files are replaced (written beside, then renamed), never written in place.
//
// Thread: immutable after Open, so any thread may read.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort {

class MappedFile final {
 public:
  // Errors: NOT_FOUND, PERMISSION_DENIED, ... from the system; INVALID_ARGUMENT if `path` is no regular file. All name
  // `path`.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  // Maps nothing: bytes() is empty.
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}

  absl::Span<const std::byte> bytes_;
};

// Reads a whole text file of at most `limit_bytes`; one that is cut short meanwhile as far as it goes.
// Errors: those of MappedFile::Open; INVALID_ARGUMENT naming the file, its size and the limit.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t limit_bytes);

}  // namespace longshort
