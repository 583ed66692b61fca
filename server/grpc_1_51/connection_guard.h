// Watches the connections that were given to gRPC, and ends those that take without giving (AbuseDetector).
//
// gRPC owns the sockets: the guard knows their numbers, asks the system for their bytes four times a second, and gRPC
// for the calls of those that received much. A connection that does nothing costs a look a second.
//
// Thread-safe; the handlers are called by the guard's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "server/grpc_1_51/abuse_detector.h"
#include "server/grpc_1_51/tcp_socket.h"
#include "server/grpc_1_51/transport_calls.h"

namespace longshort::server {

class ConnectionGuard final {
 public:
  struct Ended {
    AbuseKind why = AbuseKind::kBytes;
    std::string peer;
    int64_t received_bytes = 0;
    int64_t idle_bytes = 0;  // without a message, of these
    int64_t open_calls = 0;
  };
  struct Handlers {
    // So many connections are open.
    std::function<void(int64_t connections)> open;
    // These were ended since it was last said, not more than once a second.
    std::function<void(const std::vector<Ended>& connections)> ended;
  };

  ConnectionGuard(const AbuseLimits& limits, Handlers handlers) : limits_(limits), handlers_(std::move(handlers)) {}
  // No handler is called after it.
  ~ConnectionGuard() { thread_.Stop(); }
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  // Errors: as Thread::Start.
  absl::Status Start();

  // Watches this connection until it is closed. To be called before its socket is given to gRPC.
  void Watch(int socket);

 private:
  struct Connection {
    SocketIdentity socket;
    std::string peer;
    AbuseDetector conduct;
    ConnectionBytes bytes;
    bool moving = true;
  };

  // What the thread does at each look.
  void Look();
  // Looks at the connections whose turn it is. With the mutex held.
  void LookAtAll(absl::Time now);
  // Returns whether the connection is still there. With the mutex held.
  bool LookAt(Connection& connection, absl::Time now);
  // A connection has ended: what it held will be free in a while. With the mutex held.
  void GiveBackAfter(absl::Time end);
  void Say(absl::Time now, std::unique_lock<std::mutex>& lock);

  const AbuseLimits limits_;
  const Handlers handlers_;
  TransportCalls calls_;  // the guard's thread's

  std::mutex mutex_;                                 // guards what follows
  std::unordered_map<int, Connection> connections_;  // by the socket's number
  int64_t looks_ = 0;
  std::vector<Ended> ended_;  // since it was last said
  absl::Time say_again_ = absl::InfinitePast();
  absl::Time last_end_ = absl::InfinitePast();
  absl::Time give_back_ = absl::InfiniteFuture();  // what was freed
  TaskThread thread_;                              // last: it uses the other members
};

}  // namespace longshort::server
