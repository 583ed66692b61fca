#include <gtest/gtest.h>

#include "server/access/access_table.h"

namespace longshort::server {
namespace {

TEST(ClientAddressTest, IsWithoutThePort) {
  EXPECT_EQ(ClientAddress("ipv4:127.0.0.1:40312"), "ipv4:127.0.0.1");
  EXPECT_EQ(ClientAddress("unix:"), "unix:");
}

TEST(ClientAddressTest, OfIpv6IsTheNetworkOf64Bits) {
  EXPECT_EQ(ClientAddress("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:1"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(ClientAddress("ipv6:%5B2001:db8:1:2::7%5D:65535"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(ClientAddress("ipv6:%5Bfe80::1%eth0%5D:1"), "ipv6:fe80::");
  EXPECT_EQ(ClientAddress("ipv6:%5B::ffff:10.0.0.1%5D:1"), "ipv6:::ffff:10.0.0.1");
}

}  // namespace
}  // namespace longshort::server
