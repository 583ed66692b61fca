// Which client an address belongs to.
#pragma once

#include <string>
#include <string_view>

namespace longshort::server {

// The part of a peer, in gRPC's form, that distinguishes clients: "ipv4:127.0.0.1" of "ipv4:127.0.0.1:40312". A client
// of IPv6 usually has a whole network of 64 bits: that network counts as one client.
std::string ClientAddress(std::string_view peer);

}  // namespace longshort::server
