// grpc.health.v1: the health of the server and of its models. Health calls are answered during a stop. A stop does not
// wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/rpc/rpc.h"
#include "server/rpc/stream_limiter.h"

namespace longshort::server {

// What the server says of its health, by name, and who watches a name.
//
// Thread-safe.
class HealthRegistry final {
 public:
  // A name is known from its first Set on. Once the server stops, nothing serves, whatever is set.
  void Set(const std::string& name, bool serving);
  void StopServing();

  // Whether what has this name serves; nothing if it is not known.
  std::optional<bool> Get(const std::string& name) const;
  std::map<std::string, bool> List() const;

  // Calls `look` whenever the name's status may have changed, in the thread that changes it, until Forget; after that
  // it may still be running.
  int64_t Watch(const std::string& name, std::function<void()> look);
  void Forget(int64_t watch);

 private:
  struct Watcher {
    std::string name;
    std::function<void()> look;
  };

  mutable std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::map<std::string, bool> serving_;
  std::map<int64_t, Watcher> watchers_;
  int64_t last_watch_ = 0;
};

// What calls about health share.
struct Health {
  // Limits of open watches. Watches are idle most of the time, so the limits are high.
  static constexpr int64_t kMaxWatchesOfConnection = 100, kMaxWatches = 4096;

  HealthRegistry board;
  StreamLimiter watches{kMaxWatchesOfConnection, kMaxWatches};
};

// `health` must outlive the rows.
std::vector<Rpc> HealthRpcs(Health& health);

}  // namespace longshort::server
