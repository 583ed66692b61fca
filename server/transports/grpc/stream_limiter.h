// Limits streams that clients keep open and that cost little until there are many: for each connection, and in total.
// At the total limit a new stream replaces the longest idle stream of the connection that has the most. So a new client
// is always served, and clients with few streams keep them.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace longshort::server {

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

}  // namespace longshort::server
