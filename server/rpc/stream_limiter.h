// Streams that clients keep open and that cost the server next to nothing until there are many: bounded for each
// connection, and in all. Beyond that one of the connection that has the most makes room, the one that has been silent
// for longest: so whoever comes is served, whatever others hold, and keeps the few that he has.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"

namespace longshort::server {

class StreamLimiter final {
 public:
  StreamLimiter(int64_t max_of_connection, int64_t most) : max_of_connection_(max_of_connection), max_(most) {}

  // Takes a stream of this connection in; where there are as many as may be, another's `give_way` is called, in this
  // thread. It must not call back. Returns the stream's number.
  // Errors: RESOURCE_EXHAUSTED if the connection has as many as it may have.
  absl::StatusOr<int64_t> Add(const std::string& connection, std::function<void()> give_way);
  // The stream has done something.
  void Touch(int64_t stream);
  void Remove(int64_t stream);

 private:
  using Connections = std::map<std::string, int64_t>;
  struct Stream {
    int64_t number = 0;
    Connections::iterator connection;
    std::function<void()> give_way;
  };
  using Streams = std::list<Stream>;

  // With the mutex held.
  Streams::iterator FindVictim();
  void RemoveLocked(Streams::iterator stream);

  const int64_t max_of_connection_;
  const int64_t max_;
  std::mutex mutex_;  // guards what follows
  int64_t last_ = 0;
  Connections connections_;  // how many streams each has
  Streams streams_;          // the longest silent first
  std::map<int64_t, Streams::iterator> by_number_;
};

}  // namespace longshort::server
