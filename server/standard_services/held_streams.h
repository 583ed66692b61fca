// Streams that clients keep open and that cost the server next to nothing until there are many: bounded for each
// connection, and in all. Beyond that the one that has been silent for longest makes room, so that whoever comes is
// served, whatever others hold.
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

namespace longshort {

class HeldStreams final {
 public:
  HeldStreams(int64_t most_of_connection, int64_t most) : most_of_connection_(most_of_connection), most_(most) {}

  // Takes a stream of this connection in; where there are as many as may be, another's `give_way` is called, in this
  // thread. It must not call back. Returns the stream's number.
  // Errors: RESOURCE_EXHAUSTED if the connection has as many as it may have.
  absl::StatusOr<int64_t> Add(const std::string& connection, std::function<void()> give_way);
  // The stream has done something.
  void Touch(int64_t stream);
  void Remove(int64_t stream);

 private:
  struct Stream {
    std::string connection;
    std::function<void()> give_way;
    std::list<int64_t>::iterator place;  // in silence_
  };

  // With the mutex held.
  void RemoveLocked(std::map<int64_t, Stream>::iterator stream);

  const int64_t most_of_connection_;
  const int64_t most_;
  std::mutex mutex_;  // guards what follows
  int64_t last_ = 0;
  std::map<int64_t, Stream> streams_;
  std::map<std::string, int64_t> of_connection_;
  std::list<int64_t> silence_;  // the longest first
};

}  // namespace longshort
