#include "server/access/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace longshort::server {

std::string ClientAddress(std::string_view peer) {
  std::string_view address = peer.substr(0, peer.rfind(':'));
  if (!absl::StartsWith(absl::string_view(peer.data(), peer.size()), "ipv6:")) {
    return std::string(absl::StartsWith(absl::string_view(peer.data(), peer.size()), "ipv4:") ? address : peer);
  }
  std::string text = absl::StrReplaceAll(absl::string_view(address.data(), address.size()).substr(5),
                                         {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  in6_addr network{};
  if (inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &network) != 1) return std::string(peer);
  constexpr size_t kNetworkBytes = 8;
  if (!IN6_IS_ADDR_V4MAPPED(&network)) std::fill(network.s6_addr + kNetworkBytes, std::end(network.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> shown{};
  inet_ntop(AF_INET6, &network, shown.data(), shown.size());
  return absl::StrCat("ipv6:", shown.data());
}

}  // namespace longshort::server
