// Watches gRPC's connections, and closes those that abuse HTTP/2 (AbuseDetector).
//
// gRPC owns the sockets. The guard knows their numbers, reads their byte counts from the system fifty times a second,
// and reads the calls of busy connections from gRPC. While a connection is idle, the system reports when bytes arrive.
//
// Thread-safe; the handlers are called by the guard's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "server/options/listening_sockets.h"
#include "server/transports/grpc_1_51/abuse_detector.h"
#include "server/transports/grpc_1_51/arrival_pace.h"
#include "server/transports/grpc_1_51/tcp_socket.h"
#include "server/transports/grpc_1_51/transport_calls.h"

namespace longshort::server {

class ConnectionGuard final {
 public:
  struct Ended {
    AbuseKind why = AbuseKind::kBytes;
    std::string peer;
    int64_t received_bytes = 0;
    int64_t idle_bytes = 0;  // of these, after the last complete message
    int64_t open_calls = 0;
  };
  struct Handlers {
    // The calls that services have begun: all, and those of the connection with this peer. Null: no limit is set.
    std::function<int64_t()> begun = nullptr;
    std::function<int64_t(const std::string& peer)> begun_by = nullptr;
    // The calls that services have refused: all, and those of the connection with this peer since it was last asked
    // for. Null: no limit is set.
    std::function<int64_t()> refused = nullptr;
    std::function<int64_t(const std::string& peer)> take_refused_of = nullptr;
    // The number of open connections.
    std::function<void(int64_t connections)> open;
    // The connections closed since the last report, at most once a second.
    std::function<void(const std::vector<Ended>& connections)> ended;
  };

  ConnectionGuard(const AbuseLimits& limits, Handlers handlers) : limits_(limits), handlers_(std::move(handlers)) {}
  // No handler is called after the destructor.
  ~ConnectionGuard() { thread_.Stop(); }
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  // Errors: as Thread::Start; RESOURCE_EXHAUSTED if no descriptor is left.
  absl::Status Start();

  // When gRPC may have this new connection: now, or later if its address was abusive (ArrivalPace). nullopt: never, it
  // is to be closed.
  std::optional<absl::Time> Admit(int socket);
  // Watches this connection until it is closed. REQUIRES: gRPC does not have the socket yet.
  void Watch(int socket);

 private:
  struct Connection {
    SocketIdentity socket;
    std::string peer;
    std::string client;  // its address
    AbuseDetector detector;
    ConnectionBytes bytes;
    bool moving = true;  // polled each time
    absl::Time active;   // when bytes were last found to have moved
    std::optional<absl::Time> paused_until = {};
  };
  // A closed connection, whose memory gRPC may not have freed yet.
  struct Closing {
    std::string peer;
    absl::Time until;  // looked for in gRPC
  };

  // What the thread does at each poll.
  void Poll();
  // Marks the idle connections for which bytes have arrived.
  void FindWoken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Polls the connections whose turn it is.
  void PollAll(const PollTime& time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the connections with the most calls that no service has begun, if all have too many of them. gRPC reads the
  // message of most calls before a service can charge or refuse them.
  void EndCallsNotBegun(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pauses the connections of each client with too many refused calls, so that they are read one after the other. gRPC
  // takes as much time for a refused call as for another one, and no queue has it.
  void PaceRefusedCalls(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the connections with the most bytes since their last message, if all have too many.
  void EndIdleBytes(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the connections with the largest amounts until at most `limit` is left. `connections`: the
  // amount and the socket's number of each.
  void SeverLargest(std::vector<std::pair<int64_t, int>> connections, int64_t limit, AbuseKind why, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes some connections of the client that has the most, those that have been idle for longest.
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the connection was open.
  bool Sever(Connection& connection, AbuseKind why, absl::Time now, int64_t open_calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the connection is still open.
  bool PollConnection(Connection& connection, const PollTime& time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the system report when bytes arrive. False if it cannot.
  bool Rest(const Connection& connection);
  // Schedules the return of a closed connection's memory to the system.
  void ReturnMemoryOf(const Connection& connection, absl::Time end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether freed memory is to be returned now. Schedules the next time if gRPC has not freed all.
  bool ReturnsMemory(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AbuseLimits limits_;
  const Handlers handlers_;
  TransportCalls calls_;  // used by the guard's thread
  Descriptor arrivals_;   // an epoll of all sockets

  Mutex mutex_;
  std::unordered_map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by the socket's number
  int64_t polls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t most_calls_ ABSL_GUARDED_BY(mutex_) = 0;                        // in memory since their memory was returned
  int64_t open_at_count_ ABSL_GUARDED_BY(mutex_) = 0;                     // calls of all connections
  int64_t received_since_count_ ABSL_GUARDED_BY(mutex_) = 0;              // bytes
  absl::Time next_count_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // of each connection's calls
  int64_t refused_at_look_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();            // at refused calls
  std::unordered_map<std::string, absl::Time> next_read_ ABSL_GUARDED_BY(mutex_);  // by client, if it is paced
  ArrivalPace pace_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ended> ended_ ABSL_GUARDED_BY(mutex_);  // since the last report
  absl::Time next_report_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::vector<Closing> closing_ ABSL_GUARDED_BY(mutex_);
  absl::Time return_memory_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // freed memory
  TaskThread thread_;                                                             // last: it uses the other members
};

}  // namespace longshort::server
