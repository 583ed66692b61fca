// The thread that loads and unloads models, on request of calls and after changes of the repository.
//
// Loading takes seconds, so gRPC's threads only post a task and get a callback.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/registry/model_registry.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {

// Thread-safe. Callbacks run in the manager's thread, or in the caller's if the manager has stopped.
class ModelManager final {
 public:
  using Loaded = std::function<void(absl::StatusOr<core::LoadedVersion>)>;
  using Unloaded = std::function<void(absl::Status)>;
  // Called after a name or version was loaded, reloaded or unloaded.
  using Listener = std::function<void(const core::RegistryEvent&)>;

  // The references must outlive the manager. Tasks wait until Start.
  ModelManager(core::ModelRegistry& models, ServerMetrics& metrics, Logger& log)
      : models_(models), metrics_(metrics), log_(log) {}
  ~ModelManager() { Join(); }

  // Begins no further task: queued and later ones are answered UNAVAILABLE. May be called again.
  void Stop();
  // Stops, and waits for the running task. May be called again, by one thread at a time.
  void Join();

  // Polls the repository every `watch_interval`; never if that is 0. Call it once. Errors: RESOURCE_EXHAUSTED if no
  // thread can be started.
  absl::Status Start(absl::Duration watch_interval, Listener listener);

  using Listed = std::function<void(absl::StatusOr<core::RepositoryListing>)>;

  // As the ModelRegistry functions with these names, for clients: errors are WithoutPath.
  void LoadVersion(std::string name, int64_t version, Loaded done);
  void Unload(std::string name, int64_t version, Unloaded done);
  void ListFolders(Listed done);

 private:
  // Called with whether the manager has stopped.
  using Task = std::function<void(bool stopped)>;

  void Post(Task task);
  void FollowRepository();
  void Notify(const core::RegistryEvent& event);

  core::ModelRegistry& models_;
  ServerMetrics& metrics_;
  Logger& log_;
  Listener listener_;
  bool repository_readable_ = true;

  Mutex mutex_;                        // held while stopped_ is set, and while a task is posted
  std::atomic<bool> stopped_ = false;  // set once
  TaskThread thread_;                  // last: it uses the other members
};

}  // namespace longshort::server
