// grpc.health.v1: the health of the server and of its models. Health calls are answered during a stop, which does not
// wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/call/rpc.h"
#include "server/transports/grpc/stream_limiter.h"

namespace longshort::server {

// The health status of each name, and the watchers of each name.
//
// Thread-safe.
class HealthRegistry final {
 public:
  // Set makes a name known. After StopServing no name is serving, whatever is set.
  void Set(const std::string& name, bool serving);
  void StopServing();

  // Whether `name` is serving; nullopt if it is unknown.
  std::optional<bool> Get(const std::string& name) const;
  std::map<std::string, bool> List() const;

  // Calls `on_change` in the thread that changes the status of `name`, after each possible change, until RemoveWatch. A
  // call of `on_change` may still be running when RemoveWatch returns.
  int64_t Watch(const std::string& name, std::function<void()> on_change);
  void RemoveWatch(int64_t watch);

 private:
  struct Watcher {
    std::string name;
    std::function<void()> on_change;
  };

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  int64_t last_watch_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The state that health calls share.
struct Health {
  // Limits of open Watch calls. They are high, because watches are mostly idle.
  static constexpr int64_t kMaxWatchesOfConnection = 100, kMaxWatches = 4096;

  HealthRegistry registry;
  StreamLimiter watches{"health watches", kMaxWatchesOfConnection, kMaxWatches};
};

// `health` must outlive the rows.
std::vector<Rpc> HealthRpcs(Health& health);

}  // namespace longshort::server
