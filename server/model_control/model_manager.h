// The one thread that changes what is loaded: as it is told by calls, and as it sees the repository change.
//
// Loading takes seconds, so gRPC's threads only leave a task here and are called back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "core/registry/model_registry.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {

// Thread-safe. Callbacks come from the manager's thread, or from the caller's if the manager has stopped.
class ModelManager final {
 public:
  using Loaded = std::function<void(absl::StatusOr<std::shared_ptr<core::ServedModel>>)>;
  using Unloaded = std::function<void(absl::Status)>;
  // Hears which names and versions serve now, after something has changed.
  using Listener = std::function<void(const core::RegistryEvent&)>;

  // The references must outlive the manager. Tasks wait until Start.
  ModelManager(core::ModelRegistry& models, ServerMetrics& metrics, Logger& log)
      : models_(models), metrics_(metrics), log_(log) {}
  ~ModelManager() { Join(); }

  // Begins no further task: those that wait, or come later, are answered UNAVAILABLE. May be called again.
  void Stop();
  // Stops, and returns once the task at hand is done. May be called again, by one thread at a time.
  void Join();

  // Looks at the repository every `watch_interval`; never if that is 0. Once.
  // Errors: RESOURCE_EXHAUSTED if there is no thread to be had.
  absl::Status Start(absl::Duration watch_interval, Listener listener);

  using Listed = std::function<void(absl::StatusOr<core::RepositoryListing>)>;

  // As ModelRegistry's functions of these names.
  void LoadVersion(std::string name, int64_t version, Loaded done);
  void Unload(std::string name, int64_t version, Unloaded done);
  void ListFolders(Listed done);

 private:
  // Called with whether the manager has stopped.
  using Task = std::function<void(bool stopped)>;

  void Post(Task task);
  void FollowRepository();
  void Tell(const core::RegistryEvent& event);

  core::ModelRegistry& models_;
  ServerMetrics& metrics_;
  Logger& log_;
  Listener listener_;
  bool repository_readable_ = true;

  std::mutex mutex_;                   // held while stopped_ is set, and while a task is posted
  std::atomic<bool> stopped_ = false;  // set once
  TaskThread thread_;                  // last: it uses the other members
};

}  // namespace longshort::server
