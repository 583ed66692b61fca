// The standard services: grpc.health.v1, grpc.reflection.v1 and v1alpha.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/call/rpc.h"

namespace longshort::server {

// Limits streams that clients keep open and that cost little until there are many: for each connection, and in total.
// At the total limit a new stream replaces the longest idle stream of the connection that has the most. So a new client
// is always served, and clients with few streams keep them.
//
// Thread-safe.
class StreamLimiter final {
 public:
  // `kind`: what the streams are, in the plural, for messages.
  StreamLimiter(std::string kind, int64_t max_of_connection, int64_t max)
      : kind_(std::move(kind)), max_of_connection_(max_of_connection), max_(max) {}

  // Adds a stream of this connection. At the total limit, calls the `end_stream` of the stream that is replaced, in
  // this thread and without the limiter's lock. Returns the stream's number. Errors: RESOURCE_EXHAUSTED if the
  // connection is at its limit.
  absl::StatusOr<int64_t> Add(const std::string& connection, std::function<void()> end_stream);
  // Marks the stream as active now.
  void Touch(int64_t stream);
  void Remove(int64_t stream);

 private:
  using Connections = std::map<std::string, int64_t>;
  struct Stream {
    int64_t number = 0;
    Connections::iterator connection;
    std::function<void()> end_stream;
  };
  using Streams = std::list<Stream>;

  Streams::iterator FindStreamToEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(Streams::iterator stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string kind_;
  const int64_t max_of_connection_;
  const int64_t max_;
  Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  Connections connections_ ABSL_GUARDED_BY(mutex_);  // the number of streams of each
  Streams streams_ ABSL_GUARDED_BY(mutex_);          // the longest idle first
  std::map<int64_t, Streams::iterator> by_number_ ABSL_GUARDED_BY(mutex_);
};

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

// The state that both versions share.
struct Reflection {
  // Limits of open streams, for each connection and in total, and of the time that a stream may be idle. Clients ask
  // for what they need at once.
  static constexpr int64_t kMaxOfConnection = 16, kMax = 256;
  static constexpr absl::Duration kLongestSilence = absl::Seconds(5);

  std::vector<std::string> services;  // in full
  StreamLimiter streams{"reflection streams", kMaxOfConnection, kMax};
};

// `reflection` must outlive the rows.
std::vector<Rpc> ReflectionRpcs(Reflection& reflection);

}  // namespace longshort::server
