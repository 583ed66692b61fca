// longshort-http-load: callers on a connection each post one request over and over, and wait for its answer. One thread
// serves all, as few instructions as possible a call: the server shall be measured, not this program.
//
//   longshort-http-load PORT PATH CONTENT-TYPE BODY-FILE CALLERS SECONDS [UNTIL]
//
// Prints one JSON object: calls per second, and percentiles of the seconds of a call; with UNTIL, of the seconds until
// the answer held that text.

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace longshort::load {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kWarmUp = 0.5;

struct Load {
  unsigned short port = 0;
  std::string request;  // head and body
  std::string until;
  Clock::time_point begin;  // of the measuring
  Clock::time_point end;
  std::vector<double> seconds = {};
};

// Sends the request and reads the answer. Returns when the answer held `until`, or when it was complete.
awaitable<Clock::time_point> CallOnce(tcp::socket& socket, const Load& load, std::string& received) {
  co_await asio::async_write(socket, asio::buffer(load.request), use_awaitable);
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::numeric_limits<uint64_t>::max());
  parser.eager(true);
  Clock::time_point found = Clock::time_point::max();
  while (!parser.is_done()) {
    if (received.empty()) {
      received.resize(1 << 16);
      received.resize(co_await socket.async_read_some(asio::buffer(received), use_awaitable));
    }
    boost::system::error_code error;
    const size_t parsed = parser.put(asio::buffer(received), error);
    received.erase(0, parsed);
    if (error && error != http::error::need_more) throw boost::system::system_error(error);
    if (error == http::error::need_more) {
      const size_t left = received.size();
      received.resize(left + (1 << 16));
      received.resize(left + co_await socket.async_read_some(asio::buffer(&received[left], 1 << 16), use_awaitable));
    }
    const bool has_it = !load.until.empty() && parser.get().body().find(load.until) != std::string::npos;
    if (has_it) found = std::min(found, Clock::now());
  }
  if (parser.get().result_int() != 200) {
    std::fprintf(stderr, "the server answered %u: %s\n", parser.get().result_int(), parser.get().body().c_str());
    std::exit(1);
  }
  co_return std::min(found, Clock::now());
}

awaitable<void> Caller(asio::io_context& context, Load& load) {
  tcp::socket socket(context);
  co_await socket.async_connect({asio::ip::address_v4::loopback(), load.port}, use_awaitable);
  socket.set_option(tcp::no_delay(true));
  std::string received;
  while (Clock::now() < load.end) {
    const Clock::time_point begin = Clock::now();
    const Clock::time_point answered = co_await CallOnce(socket, load, received);
    if (begin >= load.begin && Clock::now() < load.end) load.seconds.push_back(Seconds(answered - begin).count());
  }
}

std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 6) {
    std::fprintf(stderr, "usage: longshort-http-load PORT PATH CONTENT-TYPE BODY-FILE CALLERS SECONDS [UNTIL]\n");
    return 2;
  }
  const std::string body = ReadFile(arguments[3].c_str());
  const double seconds = std::stod(arguments[5]);
  Load load{.port = static_cast<unsigned short>(std::stoi(arguments[0])),
            .request = "POST " + arguments[1] + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + arguments[2] +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
            .until = arguments.size() > 6 ? arguments[6] : "",
            .begin = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(kWarmUp)),
            .end = Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(kWarmUp + seconds))};
  asio::io_context context(1);
  for (int i = 0; i < std::stoi(arguments[4]); ++i) {
    asio::co_spawn(context, Caller(context, load), [](const std::exception_ptr& error) {
      if (error != nullptr) std::rethrow_exception(error);
    });
  }
  context.run();
  if (load.seconds.empty()) {
    std::fprintf(stderr, "no call was answered in %s seconds\n", arguments[5].c_str());
    return 1;
  }
  std::sort(load.seconds.begin(), load.seconds.end());
  const auto percentile = [&load](double share) {
    return load.seconds[static_cast<size_t>(share * static_cast<double>(load.seconds.size() - 1))];
  };
  std::printf("{\"calls_per_second\": %g, \"p50\": %g, \"p99\": %g}\n",
              static_cast<double>(load.seconds.size()) / seconds, percentile(0.5), percentile(0.99));
  return 0;
}

}  // namespace
}  // namespace longshort::load

int main(int argc, char** argv) { return longshort::load::Main({argv + 1, argv + argc}); }
