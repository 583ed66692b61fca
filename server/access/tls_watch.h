// Reloads the TLS files when they change. A FileWatch waits until a change has settled, so the two files of a pair
// need not be written at the same moment. Wrong files change nothing.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_watch.h"
#include "base/mutex.h"
#include "server/access/tls_material.h"

namespace longshort::server {

class TlsWatch final {
 public:
  // Called by the watch's thread; `publish` by Start, too.
  struct Handlers {
    // Publishes the material before current() returns it. On an error it is not used.
    std::function<absl::Status(const TlsMaterial&)> publish;
    // The material is now in use.
    std::function<void(const TlsMaterial&)> replaced;
    // The files are wrong. Called once for each error.
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
  mutable Mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort::server
