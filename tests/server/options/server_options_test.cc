#include "server/options/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/base/status_matchers.h"

namespace longshort::server::server_options_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr MachineLimits kMachine = {.cpus = 3, .memory_bytes = int64_t{1} << 30};

ServerOptions ValidOptions() {
  ServerOptions options;
  options.model_repository = ::testing::TempDir();
  return options;
}

std::string MessageOf(const ServerOptions& options) { return RefusalOf(ValidateServerOptions(options, kMachine)); }

TEST(ServerOptions, DefaultsAreValidAndThreadsFollowTheMachine) {
  const auto validated = ValidateServerOptions(ValidOptions(), kMachine);
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(validated->threads, 3);
}

TEST(ServerOptions, ThreadsThatWereAskedForStay) {
  ServerOptions options = ValidOptions();
  options.threads = 7;
  EXPECT_EQ(ValidateServerOptions(options, kMachine)->threads, 7);
}

TEST(ServerOptions, ARepositoryIsNeeded) {
  EXPECT_THAT(MessageOf(ServerOptions()), HasSubstr("--model-repository is missing"));
  ServerOptions options;
  options.model_repository = "/no/such/folder";
  EXPECT_THAT(MessageOf(options), HasSubstr("'/no/such/folder', which is not a directory"));
}

// Decoding takes 12 bytes a pixel on each thread; 25 megapixels are the default where there is more memory.
TEST(ServerOptions, TheLargestImageFollowsTheMemory) {
  ServerOptions options = ValidOptions();
  EXPECT_EQ(ValidateServerOptions(options, kMachine)->max_image_pixels, (1 << 30) / 4 / 2 / 12);
  options.preparation_threads = 1;
  EXPECT_EQ(ValidateServerOptions(options, kMachine)->max_image_pixels, (1 << 30) / 4 / 12);
  EXPECT_EQ(ValidateServerOptions(options, {.memory_bytes = int64_t{1} << 40})->max_image_pixels, 25'000'000);
  EXPECT_EQ(ValidateServerOptions(options, {.memory_bytes = 0})->max_image_pixels, 25'000'000);
  options.max_image_pixels = (1 << 30) / 2 / 12;
  EXPECT_EQ(ValidateServerOptions(options, kMachine)->max_image_pixels, options.max_image_pixels);
  ++options.max_image_pixels;
  EXPECT_THAT(MessageOf(options), AllOf(HasSubstr("--max-image-pixels is 44739243"), HasSubstr("[1, 44739242]")));
}

TEST(ServerOptions, WorkersDivideTheMachine) {
  ServerOptions options = ValidOptions();
  for (const auto& [devices, threads] : {std::pair("cpu:1", 3), std::pair("cpu:2", 1), std::pair("cpu:64", 1)}) {
    options.serving.devices = devices;
    EXPECT_EQ(ValidateServerOptions(options, kMachine)->threads, threads) << devices;
  }
}

TEST(ServerOptions, DevicesOfOtherKindsAreRefused) {
  ServerOptions options = ValidOptions();
  for (const auto& [devices, why] :
       {std::pair("cuda:0", "on the CPU only; write cpu"), std::pair("cpu:2,cuda:0", "on the CPU only; leave it out"),
        std::pair("cuda", "write cuda:N"), std::pair("cpu,cpu", "twice"), std::pair("", "no device ''")}) {
    options.serving.devices = devices;
    EXPECT_THAT(MessageOf(options), AllOf(HasSubstr("--devices is '"), HasSubstr(devices), HasSubstr(why)));
  }
}

TEST(ServerOptions, BucketsRise) {
  ServerOptions options = ValidOptions();
  for (const std::vector<double>& wrong :
       {std::vector<double>{}, {0.0}, {1.0, 1.0}, {2.0, 1.0}, {std::nan("")}, {1.0, std::nan("")}, {1.0, HUGE_VAL}}) {
    options.latency_buckets = wrong;
    EXPECT_THAT(MessageOf(options), HasSubstr("--latency-buckets"));
  }
}

TEST(ServerOptions, TwoEndpointsNeedTwoPorts) {
  ServerOptions options = ValidOptions();
  options.http_listen = options.listen;
  EXPECT_THAT(MessageOf(options), HasSubstr("each needs its own port"));
  options.listen.port = options.http_listen.port = 0;
  EXPECT_TRUE(ValidateServerOptions(options, kMachine).ok());
  options.listen = options.http_listen = {.host = "", .path = "/run/one.sock"};
  EXPECT_THAT(MessageOf(options), HasSubstr("--listen and --http-listen are both unix:/run/one.sock"));
  options.http_listen.path = "/run/another.sock";
  EXPECT_TRUE(ValidateServerOptions(options, kMachine).ok());
}

TEST(ServerOptions, CorsOriginHasNoPath) {
  ServerOptions options = ValidOptions();
  for (const char* origin : {"", "*", "https://example.com", "http://localhost:3000", "http://[::1]:80"}) {
    options.http_cors_origin = origin;
    EXPECT_TRUE(ValidateServerOptions(options, kMachine).ok()) << origin;
  }
  for (const char* wrong :
       {"example.com", "https://", "https://example.com/", "ftp://a", "https://a, https://b", "null"}) {
    options.http_cors_origin = wrong;
    EXPECT_THAT(MessageOf(options), HasSubstr("--http-cors-origin is")) << wrong;
  }
}

TEST(ListenAddress, ReadsHostAndPort) {
  EXPECT_EQ(ParseListenAddress("localhost:80")->ToString(), "localhost:80");
  EXPECT_EQ(ParseListenAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseListenAddress("[::1]:8500")->ToString(), "[::1]:8500");
  EXPECT_EQ(ParseListenAddress("unix:8500")->host, "unix");
}

TEST(ListenAddress, ReadsThePathOfAUnixSocket) {
  EXPECT_EQ(ParseListenAddress("unix:/run/a.sock")->ToString(), "unix:/run/a.sock");
  EXPECT_EQ(ParseListenAddress("unix:///run/a:1")->ToString(), "unix:/run/a:1");
  EXPECT_TRUE(CheckIsLoopback("listen", *ParseListenAddress("unix:/run/a.sock")).ok());
  const std::string longest = "unix:/" + std::string(106, 'x');
  EXPECT_TRUE(ParseListenAddress(longest).ok());
  EXPECT_EQ(ParseListenAddress(longest + "x").status().message(),
            "has a path of 108 bytes; the path of a Unix socket must have at most 107");
}

TEST(ListenAddress, RefusesWhatIsNone) {
  for (const char* wrong : {"", ":", "host", "host:", ":80", "host:x", "host:-1", "host:65536", "::1:80", "[]:80",
                            "unix:", "unix:a", "unix:/", "unix:/run/"}) {
    EXPECT_EQ(ParseListenAddress(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace longshort::server::server_options_test
