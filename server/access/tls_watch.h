// Keeps what TLS needs up to date with its files, by a FileWatch: so the files of a pair may be written one after the
// other. Wrong files change nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_watch.h"
#include "server/access/tls_material.h"

namespace longshort {

// A file that lies in memory only, for libraries that read files and for content that no disk should hold.
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

class TlsWatch final {
 public:
  // Called by the watch's thread.
  struct Handlers {
    // This is in use from now on.
    std::function<void(const TlsMaterial&)> replaced;
    // The files are wrong: once for each error.
    std::function<void(const absl::Status&)> broken;
  };

  // Errors: those of TlsMaterial::Load and MemoryFile; RESOURCE_EXHAUSTED if the system has no thread.
  static absl::StatusOr<std::unique_ptr<TlsWatch>> Start(const TlsFiles& files, Handlers handlers);

  // Thread-safe.
  std::shared_ptr<const TlsMaterial> current() const;

  // For gRPC, which takes it from files: IdentityPem() and ClientAuthoritiesPem() of what is in use.
  std::string identity_path() const { return identity_.path(); }
  std::string client_authorities_path() const { return client_authorities_.path(); }

 private:
  TlsWatch(MemoryFile identity, MemoryFile client_authorities)
      : identity_(std::move(identity)), client_authorities_(std::move(client_authorities)) {}

  absl::Status Publish(std::shared_ptr<const TlsMaterial> material);

  MemoryFile identity_;
  MemoryFile client_authorities_;

  int64_t published_ = 0;  // how often; by Start, then by the watch's thread

  mutable std::mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_;  // guarded by mutex_

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort
