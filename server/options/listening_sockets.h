// The sockets that listen on one address.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/options/listen_address.h"

namespace longshort::server {

// A file descriptor, closed with the object.
class Descriptor final {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const { return number_; }
  // The caller becomes responsible for closing it.
  int Release();

 private:
  int number_;
};

// The local port of a socket; 0 if it has none.
int PortOf(int socket);

struct ListeningSockets {
  // Non-blocking; one for each address that the host resolves to.
  std::vector<Descriptor> sockets;
  int port = 0;
};

// `option`, without dashes, names the address in errors.
struct NamedAddress {
  std::string option;
  ListenAddress address;
};

absl::Status CannotBind(const NamedAddress& name, const std::string& why);

// Binds all addresses that the host resolves to; connections are refused until Listen. "[::]" is any IPv4 or IPv6
// address, "0.0.0.0" any IPv4 address. Errors: UNAVAILABLE if none can be bound, or one of them is in use.
absl::StatusOr<ListeningSockets> BindSockets(const NamedAddress& name);

// Starts to listen: the system queues connections until they are accepted. Errors: UNAVAILABLE if another process has
// begun to listen on one of the addresses.
absl::Status Listen(const NamedAddress& name, const ListeningSockets& listening);

}  // namespace longshort::server
