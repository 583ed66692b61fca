#include "server/options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const std::vector<std::string>& arguments) {
  const auto line = ParseCommandLine(arguments);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(line.status().message());
}

TEST(CommandLine, EveryKindOfOptionIsRead) {
  const auto line = ParseCommandLine({"--model-repository", "zoo", "--threads=4", "--listen=[::1]:1", "--check-config",
                                      "--drain-timeout=1m", "--log-format=json", "--latency-buckets=0.1,1"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.model_repository, "zoo");
  EXPECT_EQ(line->options.threads, 4);
  EXPECT_EQ(line->options.listen.host, "::1");
  EXPECT_TRUE(line->options.check_config);
  EXPECT_EQ(line->options.drain_timeout, absl::Minutes(1));
  EXPECT_EQ(line->options.log_format, LogFormat::kJson);
  EXPECT_THAT(line->options.latency_buckets, ::testing::ElementsAre(0.1, 1));
}

TEST(CommandLine, WrongArgumentsAreNamed) {
  EXPECT_THAT(MessageOf({"serve"}), HasSubstr("'serve' is not an option"));
  EXPECT_THAT(MessageOf({"--max-stream=1"}), HasSubstr("did you mean --max-streams?"));
  EXPECT_THAT(MessageOf({"--log-level=all"}), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(MessageOf({"--log-format=xml"}), HasSubstr("text or json"));
  EXPECT_THAT(MessageOf({"--latency-buckets=1,x"}), HasSubstr("seconds with commas between"));
  EXPECT_THAT(MessageOf({"--listen=8500"}), HasSubstr("--listen is '8500'"));
}

TEST(CommandLine, HelpTellsEveryDefault) {
  const std::string help = HelpText();
  EXPECT_THAT(help, HasSubstr("--listen=host:port  (default: 127.0.0.1:8500)"));
  EXPECT_THAT(help, HasSubstr("--drain-timeout=duration  (default: 25s)"));
  EXPECT_THAT(help, HasSubstr("--model-repository=DIR  (no default)"));
  EXPECT_TRUE(ParseCommandLine({"--help"})->help);
  EXPECT_TRUE(ParseCommandLine({"--version"})->version);
}

}  // namespace
}  // namespace longshort
