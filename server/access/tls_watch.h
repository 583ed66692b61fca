// Keeps what TLS needs up to date with its files, by a FileWatch: so the files of a pair may be written one after the
// other. Wrong files change nothing.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_watch.h"
#include "server/access/tls_material.h"

namespace longshort::server {

class TlsWatch final {
 public:
  // Called by the watch's thread; `publish` by Start, too.
  struct Handlers {
    // Hands this on before current() has it. What it refuses does not come into use.
    std::function<absl::Status(const TlsMaterial&)> publish;
    // This is in use from now on.
    std::function<void(const TlsMaterial&)> replaced;
    // The files are wrong: once for each error.
    std::function<void(const absl::Status&)> broken;
  };

  // Errors: those of TlsMaterial::Load and of `publish`; RESOURCE_EXHAUSTED if the system has no thread.
  static absl::StatusOr<std::unique_ptr<TlsWatch>> Start(const TlsFiles& files, Handlers handlers);

  // Thread-safe.
  std::shared_ptr<const TlsMaterial> current() const;

 private:
  explicit TlsWatch(Handlers handlers) : handlers_(std::move(handlers)) {}

  absl::Status Publish(std::shared_ptr<const TlsMaterial> material);

  const Handlers handlers_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_;  // guarded by mutex_

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort::server
