// Accepts connections as long as the process has descriptors for them.
//
// gRPC's own listener ends at the first connection for which there is none: nobody could connect any more, however many
// were closed since. Here such a connection is closed at once, so that the client asks elsewhere or later, and the last
// descriptors stay for what else opens files (metrics, probes, models).
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/thread.h"
#include "server/options/listening_sockets.h"
#include "server/options/server_options.h"

namespace longshort::server {

// Lets the process have as many descriptors as the system allows it (`ulimit -Hn`).
void RaiseDescriptorLimit();

// This process's sockets that are connected at the local `port`. Whoever closes one meanwhile is counted or not.
int64_t CountConnections(int port);

class ConnectionListener final {
 public:
  // Are called by the listener's thread.
  struct Handlers {
    // A connection's socket, which does not block: whoever takes it closes it.
    std::function<void(int socket)> accepted;
    // So many connections were refused since it was last said, not more than once a second.
    std::function<void(int64_t connections)> refused;
  };

  // Binds all addresses that the host stands for; connections are refused yet. "[::]" is any of either family,
  // "0.0.0.0" any of IPv4. Errors: UNAVAILABLE if there is none that can be bound, or one of them is in use.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Bind(const ListenAddress& address);
  // Accepts what has connected until now, and no more: no handler is called after it.
  ~ConnectionListener();

  int port() const { return listening_.port; }

  // Listens and accepts from now on. Errors: UNAVAILABLE if somebody else has listened at one of the addresses
  // meanwhile; RESOURCE_EXHAUSTED if no thread is to be had.
  absl::Status Start(Handlers handlers);

 private:
  ConnectionListener(NamedAddress name, ListeningSockets listening)
      : name_(std::move(name)), listening_(std::move(listening)) {}

  void Accept();
  // Takes what has connected and waits to be accepted.
  void AcceptLast(std::vector<pollfd> listening);
  // Takes some of what waits at one socket. Returns whether there are descriptors for more.
  bool AcceptFrom(int listening);

  const NamedAddress name_;
  const ListeningSockets listening_;
  Descriptor wake_;             // readable once the listener ends
  int64_t first_reserved_ = 0;  // descriptors from this number on are not for connections
  int64_t refused_ = 0;         // since it was last said
  Handlers handlers_;
  Thread thread_;
};

}  // namespace longshort::server
