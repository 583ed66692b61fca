// In-memory files of certificates for gRPC, which reloads certificates only from files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// A file in memory only, so that private keys are not on a disk.
//
// A reader that opens path() sees the content of exactly one Write.
class MemoryFile final {
 public:
  // An empty file. Errors: UNAVAILABLE from the system.
  static absl::StatusOr<MemoryFile> Create();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) = delete;
  ~MemoryFile();

  // The file's path, valid in this process only.
  std::string path() const;

  // Replaces the content atomically. The file's modification time changes, too, by whole seconds. Errors: UNAVAILABLE
  // from the system; then the content is unchanged.
  absl::Status Write(std::string_view content);

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  int64_t writes_ = 0;
};

}  // namespace longshort::server
