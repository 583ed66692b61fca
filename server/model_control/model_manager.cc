#include "server/model_control/model_manager.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace longshort {
namespace {

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

void ModelManager::Stop() {
  std::deque<Task> waiting;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    waiting.swap(tasks_);
  }
  changed_.notify_all();
  for (const Task& task : waiting) task(/*stopped=*/true);
}

void ModelManager::Join() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status ModelManager::Start(absl::Duration watch_interval, Listener listener) {
  watch_interval_ = watch_interval;
  listener_ = std::move(listener);
  try {
    thread_ = std::thread(&ModelManager::Work, this);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the thread that loads models: ", error.what()));
  }
  return absl::OkStatus();
}

void ModelManager::LoadVersion(std::string name, int64_t version, Loaded done) {
  Post([this, name = std::move(name), version, done = std::move(done)](bool stopped) {
    if (stopped) return done(Stopping());
    absl::StatusOr<std::shared_ptr<ServedModel>> loaded =
        models_.LoadVersion(name, version, [this](const RegistryEvent& event) { Tell(event); });
    if (absl::IsCancelled(loaded.status())) return done(Stopping());
    done(std::move(loaded));
  });
}

void ModelManager::Unload(std::string name, int64_t version, Unloaded done) {
  Post([this, name = std::move(name), version, done = std::move(done)](bool stopped) {
    if (stopped) return done(Stopping());
    std::vector<int64_t> versions;
    for (const std::shared_ptr<ServedModel>& served : models_.List()) {
      if (served->name == name && (version == 0 || served->version == version)) versions.push_back(served->version);
    }
    const absl::Status status = models_.Unload(name, version);
    for (const int64_t gone : versions) Tell({RegistryEvent::Kind::kUnloaded, name, gone, absl::OkStatus()});
    done(status);
  });
}

void ModelManager::ListFolders(Listed done) {
  Post([this, done = std::move(done)](bool stopped) {
    if (stopped) return done(Stopping());
    done(models_.ListFolders());
  });
}

void ModelManager::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      tasks_.push_back(std::move(task));
      changed_.notify_all();
      return;
    }
  }
  task(/*stopped=*/true);
}

void ModelManager::Work() {
  absl::Time next_look = watch_interval_ > absl::ZeroDuration() ? MonotonicNow() : absl::InfiniteFuture();
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return stopped_ || !tasks_.empty(); };
  for (;;) {
    if (next_look == absl::InfiniteFuture()) {
      changed_.wait(lock, has_work);
    } else {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(next_look - MonotonicNow()), has_work);
    }
    if (stopped_) return;
    Task task;
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    lock.unlock();
    if (task != nullptr) task(/*stopped=*/false);
    task = nullptr;  // it may be the last to hold its call
    if (MonotonicNow() >= next_look) {
      FollowRepository();
      next_look = MonotonicNow() + watch_interval_;
    }
    lock.lock();
  }
}

void ModelManager::FollowRepository() {
  const absl::Status status = models_.FollowRepository([this](const RegistryEvent& event) { Tell(event); });
  if (status.ok() != repository_readable_) {  // said once, not at every look
    repository_readable_ = status.ok();
    if (status.ok()) {
      log_.Info("the repository can be read again", {});
    } else {
      log_.Error("the repository cannot be read; what is loaded goes on serving",
                 {{"error", std::string(status.message())}});
    }
  }
}

void ModelManager::Tell(const RegistryEvent& event) {
  switch (event.kind) {
    case RegistryEvent::Kind::kLoaded:
      if (const auto served = models_.Find(event.model, event.version); served.ok()) {
        metrics_.SetModelLoadDuration(event.model, event.version, (*served)->load_duration);
      }
      log_.Info("model loaded", {{"model", event.model}, {"version", event.version}});
      break;
    case RegistryEvent::Kind::kUnloaded:
      metrics_.ForgetModel(event.model, event.version);
      log_.Info("model unloaded", {{"model", event.model}, {"version", event.version}});
      break;
    case RegistryEvent::Kind::kFailed: {
      metrics_.CountModelLoadFailure();
      LogFields fields = {{"model", event.model}};
      if (event.version != 0) fields.emplace_back("version", event.version);
      fields.emplace_back("error", std::string(event.status.message()));
      log_.Error("model not loaded; what was serving goes on", std::move(fields));
      return;
    }
    case RegistryEvent::Kind::kSkipped:
      log_.Log(LogLevel::kWarning, "folder skipped", {{"reason", std::string(event.status.message())}});
      return;
  }
  if (listener_ != nullptr) listener_(event);
}

}  // namespace longshort
