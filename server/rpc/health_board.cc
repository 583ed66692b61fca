#include "server/rpc/health_board.h"

#include <utility>
#include <vector>

namespace longshort {

void HealthBoard::Set(const std::string& name, bool serving) {
  std::vector<std::function<void()>> looks;
  {
    const std::lock_guard lock(mutex_);
    serving_[name] = serving && !stopping_;
    for (const auto& [watch, watcher] : watchers_) {
      if (watcher.name == name) looks.push_back(watcher.look);
    }
  }
  for (const std::function<void()>& look : looks) look();
}

void HealthBoard::StopServing() {
  std::vector<std::function<void()>> looks;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [name, serving] : serving_) serving = false;
    for (const auto& [watch, watcher] : watchers_) looks.push_back(watcher.look);
  }
  for (const std::function<void()>& look : looks) look();
}

std::optional<bool> HealthBoard::Get(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = serving_.find(name);
  if (found == serving_.end()) return std::nullopt;
  return found->second;
}

std::map<std::string, bool> HealthBoard::List() const {
  const std::lock_guard lock(mutex_);
  return serving_;
}

int64_t HealthBoard::Watch(const std::string& name, std::function<void()> look) {
  const std::lock_guard lock(mutex_);
  watchers_[++last_watch_] = {name, std::move(look)};
  return last_watch_;
}

void HealthBoard::Forget(int64_t watch) {
  const std::lock_guard lock(mutex_);
  watchers_.erase(watch);
}

}  // namespace longshort
