// Certificates for gRPC, which reads them again from files only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// A file that lies in memory only: no disk should hold private keys.
//
// A reader that opens path() sees the content of one Write, never parts of two.
class MemoryFile final {
 public:
  // An empty file. Errors: UNAVAILABLE from the system.
  static absl::StatusOr<MemoryFile> Create();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) = delete;
  ~MemoryFile();

  // Where this process, and no other, finds it.
  std::string path() const;

  // Puts another content in its place. The file's time is another one then, too, to the second.
  // Errors: UNAVAILABLE from the system; then the old content is still there.
  absl::Status Write(std::string_view content);

 private:
  explicit MemoryFile(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
  int64_t writes_ = 0;
};

}  // namespace longshort::server
