#include "server/transports/http/http_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <string>

#include "server/options/listening_sockets.h"

namespace longshort::server::http_stream_test {

// A connection that has served a request and waits for the next one, as most do for most of the time.
TEST(HttpStream, AnEmptyBufferHasNoMemoryWhileItWaits) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Descriptor client(ends[0]);
  boost::asio::io_context context;
  HttpStream stream(HttpSocket(context, HttpSocket::protocol_type(AF_UNIX, 0), ends[1]), nullptr);
  std::string buffer;
  const auto read = [&] {
    boost::asio::co_spawn(
        context, [&]() -> boost::asio::awaitable<void> { co_await stream.Read(buffer, 64 << 10); },
        boost::asio::detached);
    context.restart();
    context.poll();
  };
  ASSERT_EQ(send(client.number(), std::string(40'000, 'x').data(), 40'000, 0), 40'000);
  read();
  ASSERT_EQ(buffer.size(), 40'000U);
  buffer.clear();
  read();
  EXPECT_EQ(buffer.capacity(), std::string().capacity());
}

}  // namespace longshort::server::http_stream_test
