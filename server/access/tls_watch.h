// Keeps what TLS needs as its files have it: looks at them every second, and takes what is right there once it has not
// changed since the last look. So the files of a pair may be written one after the other.
//
// What is wrong there changes nothing: what was taken before stays in use.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/memory_file.h"
#include "server/access/tls_material.h"

namespace longshort {

class TlsWatch final {
 public:
  // Called by the watch's thread.
  struct Handlers {
    // This is used from now on.
    std::function<void(const TlsMaterial&)> replaced;
    // The files are wrong. Told once for each thing that is wrong.
    std::function<void(const absl::Status&)> broken;
  };

  // Errors: those of TlsMaterial::Load and MemoryFile; RESOURCE_EXHAUSTED if no thread is to be had.
  static absl::StatusOr<std::unique_ptr<TlsWatch>> Start(const TlsFiles& files, Handlers handlers);
  ~TlsWatch();

  // Thread-safe.
  std::shared_ptr<const TlsMaterial> current() const;

  // For gRPC, which takes it from files: IdentityPem() and ClientAuthoritiesPem() of what is in use.
  std::string identity_path() const { return identity_.path(); }
  std::string client_authorities_path() const { return client_authorities_.path(); }

 private:
  TlsWatch(TlsFiles files, Handlers handlers, MemoryFile identity, MemoryFile client_authorities)
      : files_(std::move(files)),
        handlers_(std::move(handlers)),
        identity_(std::move(identity)),
        client_authorities_(std::move(client_authorities)) {}

  absl::Status Publish(std::shared_ptr<const TlsMaterial> material);
  void Watch();
  // Takes what the files hold, if that is right and they have changed.
  void Look();

  const TlsFiles files_;
  const Handlers handlers_;
  MemoryFile identity_;
  MemoryFile client_authorities_;

  // Of the watch's thread.
  std::string taken_;       // how the files looked when they were read last and were right
  int64_t published_ = 0;   // how often
  std::string looked_;      // how they looked last
  std::string told_wrong_;  // the last that was told

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const TlsMaterial> current_;  // guarded by mutex_
  bool ending_ = false;                         // guarded by mutex_
  std::thread thread_;
};

}  // namespace longshort
