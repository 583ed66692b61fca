// Accepts connections for gRPC while the process has file descriptors left.
//
// gRPC's own listener stops permanently at the first connection without a descriptor. This one closes such a connection
// at once, so that the client tries another server or retries, and reserves the last descriptors for other files
// (metrics, probes, models).
//
// gRPC would answer a client that speaks HTTP/1 with a frame of HTTP/2. The listener looks at a connection's first
// bytes, and answers such a client where HTTP is. It waits for these bytes for a tenth of a second, then accepts the
// connection: clients of HTTP/2 send at once.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "server/options/listening_sockets.h"
#include "server/options/server_options.h"

namespace longshort::server {

// Raises the process's limit of descriptors to the hard limit (`ulimit -Hn`).
void RaiseDescriptorLimit();

// Counts this process's connected sockets with the local port of `address`, or its path. A socket that closes meanwhile
// may or may not count.
int64_t CountConnections(const ListenAddress& address);

class ConnectionListener final {
 public:
  // Called by the listener's thread.
  struct Handlers {
    // When this connection may be handed over, and nullopt if it is to be closed. Null: at once.
    std::function<std::optional<absl::Time>(int socket)> admitted = nullptr;
    // A connection's non-blocking socket; the handler takes ownership.
    std::function<void(int socket)> accepted;
    // The number of connections refused since the last report, at most once a second.
    std::function<void(int64_t connections)> refused;
  };

  // As BindSockets. `http` is where the server speaks HTTP.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Bind(const ListenAddress& address,
                                                                  int64_t mode = kDefaultSocketMode,
                                                                  const std::string& http = "another port");
  // Accepts the connections that are already queued, then stops. Those that wait for their time are closed. No handler
  // is called after it.
  ~ConnectionListener();

  // With the port that the system chose, if it was to choose one.
  const ListenAddress& address() const { return name_.address; }

  // Starts to listen and accept. Errors: UNAVAILABLE if another process has begun to listen on one of the addresses;
  // RESOURCE_EXHAUSTED if no thread can be started.
  absl::Status Start(Handlers handlers);

 private:
  ConnectionListener(NamedAddress name, ListeningSockets listening)
      : name_(std::move(name)), listening_(std::move(listening)) {
    name_.address.port = listening_.port;
  }

  void Accept();
  // Accepts the connections that are already queued.
  void AcceptLast(std::vector<pollfd> listening);
  // Accepts some connections of one socket. Returns whether descriptors are left.
  bool AcceptFrom(int listening);
  // Hands the connection over, or has it wait for its time.
  void Admit(Descriptor connection);
  // Hands over the connections whose time has come. Returns the time until the next one.
  absl::Duration HandOverWaiting();
  // Hands the connection over once its first bytes are there, or answers it.
  void HandOver(Descriptor connection);
  // Hands over a connection whose first bytes are there, or answers it. Returns false if none are there.
  bool TakeIfKnown(Descriptor& connection);
  // Takes the silent connections that have sent bytes, and all that have been silent for kSilence.
  void TakeSilent(absl::Time now);
  void Answer(Descriptor connection) const;

  // A connection that has not sent anything yet.
  struct Silent {
    Descriptor connection;
    absl::Time accepted;
  };

  NamedAddress name_;
  ListeningSockets listening_;
  Descriptor wake_;                                // readable when the listener must end
  int64_t first_reserved_ = 0;                     // descriptors from this number on are not for connections
  int64_t refused_ = 0;                            // since the last report
  std::multimap<absl::Time, Descriptor> waiting_;  // accepted, by the time when they may be handed over
  std::vector<Silent> silent_;                     // at most kMaxSilent, the oldest first
  std::string http_answer_;
  Handlers handlers_;
  Thread thread_;
};

}  // namespace longshort::server
