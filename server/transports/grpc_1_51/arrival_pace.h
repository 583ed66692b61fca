// Paces the new connections of addresses whose connections were closed for abuse: otherwise their clients would connect
// again at once, and cost others as much as a connection that stays.
//
// Not thread-safe: its owner locks.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/transports/grpc_1_51/abuse_detector.h"

namespace longshort::server {

class ArrivalPace final {
 public:
  // A connection of this address was closed for abuse.
  void Abused(std::string_view address, AbuseKind why, absl::Time now);

  // When a new connection of this address may begin: now, if no abuse is known, otherwise some time after the one
  // before it. nullopt: too many wait already, so this one is to be closed. Those that wait take no thread, but a
  // descriptor.
  std::optional<absl::Time> Begin(std::string_view address, absl::Time now);

 private:
  struct Address {
    absl::Time free;       // when the next connection may begin
    absl::Time until;      // it is paced until then
    absl::Duration pause;  // between connections
  };

  std::map<std::string, Address, std::less<>> addresses_;
};

}  // namespace longshort::server
