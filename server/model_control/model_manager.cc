#include "server/model_control/model_manager.h"

#include <utility>
#include <vector>

#include "core/requests/request_context.h"

namespace longshort::server {

void ModelManager::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (TaskThread::Task& task : thread_.TakeWaiting()) task();
}

void ModelManager::Join() {
  Stop();
  thread_.Stop();
}

absl::Status ModelManager::Start(absl::Duration watch_interval, Listener listener) {
  listener_ = std::move(listener);
  TaskThread::Periodic poll;
  if (watch_interval > absl::ZeroDuration()) {
    poll = {.interval = watch_interval, .run = [this] { FollowRepository(); }};
    thread_.Post(poll.run);
  }
  return thread_.Start("the thread that loads models", std::move(poll));
}

void ModelManager::LoadVersion(std::string name, int64_t version, Loaded done) {
  Post([this, name = std::move(name), version, done = std::move(done)](bool stopped) {
    if (stopped) return done(core::ServerIsStopping());
    absl::StatusOr<core::LoadedVersion> loaded =
        models_.LoadVersion(name, version, [this](const core::RegistryEvent& event) { Notify(event); });
    metrics_.SetModelsNotLoaded(models_.failures().size());
    if (absl::IsCancelled(loaded.status())) return done(core::ServerIsStopping());
    if (!loaded.ok()) return done(models_.WithoutPath(loaded.status()));
    done(std::move(loaded));
  });
}

void ModelManager::Unload(std::string name, int64_t version, Unloaded done) {
  Post([this, name = std::move(name), version, done = std::move(done)](bool stopped) {
    if (stopped) return done(core::ServerIsStopping());
    std::vector<int64_t> versions;
    for (const std::shared_ptr<core::ServedModel>& served : models_.List()) {
      if (served->name == name && (version == 0 || served->version == version)) versions.push_back(served->version);
    }
    const absl::Status status = models_.Unload(name, version);
    metrics_.SetModelsNotLoaded(models_.failures().size());
    for (const int64_t gone : versions) Notify({core::RegistryEvent::Kind::kUnloaded, name, gone, absl::OkStatus()});
    done(status);
  });
}

void ModelManager::ListFolders(Listed done) {
  Post([this, done = std::move(done)](bool stopped) {
    if (stopped) return done(core::ServerIsStopping());
    const absl::StatusOr<core::RepositoryListing> folders = models_.ListFolders();
    if (!folders.ok()) return done(models_.WithoutPath(folders.status()));
    done(folders);
  });
}

void ModelManager::Post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (!stopped_) return thread_.Post([this, task = std::move(task)] { task(stopped_); });
  }
  task(/*stopped=*/true);
}

void ModelManager::FollowRepository() {
  if (stopped_) return;
  const absl::Status status = models_.FollowRepository([this](const core::RegistryEvent& event) { Notify(event); });
  metrics_.SetModelsNotLoaded(models_.failures().size());
  if (status.ok() != repository_readable_) {  // logged once, not at every poll
    repository_readable_ = status.ok();
    if (status.ok()) {
      log_.Info("the repository is readable again", {});
    } else {
      log_.Error("the repository cannot be read; the loaded models stay served",
                 {{"error", std::string(status.message())}});
    }
  }
}

void ModelManager::Notify(const core::RegistryEvent& event) {
  switch (event.kind) {
    case core::RegistryEvent::Kind::kLoaded:
    case core::RegistryEvent::Kind::kReloaded: {
      LogFields fields = {{"model", event.model}, {"version", event.version}};
      if (const auto served = models_.Find(event.model, event.version); served.ok()) {
        metrics_.SetModelLoadDuration(event.model, event.version, (*served)->load_duration);
        fields.emplace_back("fingerprint", (*served)->fingerprint());
      }
      if (event.kind == core::RegistryEvent::Kind::kLoaded) {
        log_.Info("model loaded", std::move(fields));
      } else {
        fields.emplace_back("changed", event.changed);
        log_.Info("model reloaded", std::move(fields));
      }
      break;
    }
    case core::RegistryEvent::Kind::kUnchanged:
      log_.Info("model unchanged: its files were written again with the same content",
                {{"model", event.model}, {"version", event.version}});
      return;
    case core::RegistryEvent::Kind::kUnloaded:
      metrics_.RemoveModel(event.model, event.version);
      log_.Info("model unloaded", {{"model", event.model}, {"version", event.version}});
      break;
    case core::RegistryEvent::Kind::kFailed: {
      metrics_.CountModelLoadFailure();
      LogFields fields = {{"model", event.model}};
      if (event.version != 0) fields.emplace_back("version", event.version);
      fields.emplace_back("error", std::string(event.status.message()));
      log_.Error("model not loaded; the served versions stay the same", std::move(fields));
      return;
    }
    case core::RegistryEvent::Kind::kStopped:
      return;
    case core::RegistryEvent::Kind::kSkipped:
      log_.Log(LogLevel::kWarning, "folder skipped", {{"reason", std::string(event.status.message())}});
      return;
  }
  if (listener_ != nullptr) listener_(event);
}

}  // namespace longshort::server
