#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/options/server_options.h"
#include "tests/base/status_matchers.h"

namespace longshort::server::command_line_test {

using ::testing::HasSubstr;

std::string MessageOf(const std::vector<std::string>& arguments) { return RefusalOf(ParseCommandLine(arguments)); }

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
  EXPECT_THAT(MessageOf({"--model-repo=zoo"}), HasSubstr("did you mean --model-repository=DIR?"));
  EXPECT_THAT(MessageOf({"--api-key=x"}), HasSubstr("did you mean --token-file=FILE?"));
  EXPECT_THAT(MessageOf({"--port=8500"}), HasSubstr("did you mean --listen=HOST:PORT (gRPC) or --http-listen"));
  EXPECT_THAT(MessageOf({"--log-level=all"}), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(MessageOf({"--log-requests=0"}), HasSubstr("all, errors, or a whole number of at least 1"));
  EXPECT_THAT(MessageOf({"--log-format=xml"}), HasSubstr("text or json"));
  EXPECT_THAT(MessageOf({"--latency-buckets=1,x"}), HasSubstr("seconds separated by commas"));
  EXPECT_THAT(MessageOf({"--listen=8500"}), HasSubstr("--listen is '8500'"));
  EXPECT_THAT(MessageOf({"--http-listen=unix:/a/"}), HasSubstr("names a folder"));
  for (const char* mode : {"--listen-mode=", "--listen-mode=8", "--listen-mode=1000", "--listen-mode=-1"}) {
    EXPECT_THAT(MessageOf({mode}), HasSubstr("must be an octal number from 0 to 777")) << mode;
  }
}

TEST(CommandLine, AValueOutOfItsRangeIsNamedWithTheLimits) {
  EXPECT_EQ(MessageOf({"--max-streams=-1"}), "--max-streams is '-1'; it must be in [1, 65536]");
  EXPECT_EQ(MessageOf({"--threads=1025"}), "--threads is '1025'; it must be in [0, 1024]");
  EXPECT_EQ(MessageOf({"--step-time=1m"}), "--step-time is '1m'; it must be in [1ms, 10s]");
  EXPECT_EQ(MessageOf({"--drain-timeout=-1s"}), "--drain-timeout is '-1s'; it must be in [0, 1h]");
  EXPECT_EQ(MessageOf({"--slow-reader-timeout=99ms"}), "--slow-reader-timeout is '99ms'; it must be in [100ms, 1h]");
  EXPECT_EQ(MessageOf({"--max-message-bytes=2147483648"}),
            "--max-message-bytes is '2147483648'; it must be in [1024, 1073741824]");
  EXPECT_EQ(MessageOf({"--max-image-pixels=-1"}), "--max-image-pixels is '-1'; it must be in [0, 67108864]");
  EXPECT_EQ(MessageOf({"--watch-repository=1ms"}), "--watch-repository is '1ms'; it must be 0 or in [100ms, 1h]");
  EXPECT_EQ(MessageOf({"--max-running-per-client=65537"}),
            "--max-running-per-client is '65537'; it must be in [0, 65536]");
  EXPECT_EQ(MessageOf({"--trace-sample-ratio=nan"}), "--trace-sample-ratio is 'nan'; it must be in [0, 1]");
}

TEST(CommandLine, HelpNamesEveryDefaultAndRange) {
  const std::string help = HelpText(HelpForm::kText);
  EXPECT_THAT(help, HasSubstr("--listen=host:port|unix:/path  (default: 127.0.0.1:8500)"));
  EXPECT_THAT(help, HasSubstr("--drain-timeout=duration  (default: 25s; 0 to 1h)"));
  EXPECT_THAT(help, HasSubstr("--max-running-per-client=N  (default: 0; 0 to 65536)"));
  EXPECT_THAT(help, HasSubstr("--model-repository=DIR  (no default)"));
  EXPECT_EQ(ParseCommandLine({"--help"})->help, HelpForm::kText);
  EXPECT_EQ(ParseCommandLine({"--help=markdown"})->help, HelpForm::kMarkdown);
  EXPECT_TRUE(ParseCommandLine({"--version"})->version);
}

TEST(CommandLine, TheTablesOfTheDocsHaveTheFieldsOfServingJsonToo) {
  const std::string tables = HelpText(HelpForm::kMarkdown);
  EXPECT_THAT(tables, HasSubstr("| `--precision=fp32\\|bf16\\|int8` | `fp32` |  | Precision of weights"));
  EXPECT_THAT(tables, HasSubstr("| `--step-time=duration` | `20ms` | 1ms to 10s | "));
  EXPECT_THAT(tables, HasSubstr("| `\"max_queue_delay\": \"duration\"` | `0` | 0 to 1m | "));
}

}  // namespace longshort::server::command_line_test
