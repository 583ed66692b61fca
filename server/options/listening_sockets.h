// The sockets of one address that is listened at.
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
  // Whoever calls it closes it.
  int Release();

 private:
  int number_;
};

// The local port of a socket; 0 if it has none.
int PortOf(int socket);

struct ListeningSockets {
  // One for each address that the host stands for; they do not block.
  std::vector<Descriptor> sockets;
  int port = 0;
};

// `option`, without dashes, names the address in errors.
struct NamedAddress {
  std::string option;
  ListenAddress address;
};

absl::Status CannotBind(const NamedAddress& name, const std::string& why);

// Binds all addresses that the host stands for; connections are refused yet. "[::]" is any of either family, "0.0.0.0"
// any of IPv4. Errors: UNAVAILABLE if there is none that can be bound, or one of them is in use.
absl::StatusOr<ListeningSockets> BindSockets(const NamedAddress& name);

// Connections are taken, and wait to be accepted, from now on. Errors: UNAVAILABLE if somebody else has listened at one
// of the addresses meanwhile.
absl::Status Listen(const NamedAddress& name, const ListeningSockets& listening);

}  // namespace longshort::server
