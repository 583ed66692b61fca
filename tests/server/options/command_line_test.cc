#include "server/options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace longshort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

std::string MessageOf(const std::vector<std::string>& arguments) {
  const auto line = ParseCommandLine(arguments);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(line.status().message());
}

TEST(CommandLine, ReadsValuesInBothForms) {
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

TEST(CommandLine, TheLastValueWins) {
  EXPECT_EQ(ParseCommandLine({"--threads=1", "--threads=2"})->options.threads, 2);
  EXPECT_FALSE(ParseCommandLine({"--check-config", "--check-config=false"})->options.check_config);
}

TEST(CommandLine, ReadsFilesInTheirPlace) {
  const std::string inner = WriteFile("inner", "--threads=2\n");
  const std::string outer = WriteFile("outer", "# comment\n\n  --precision=bf16\n--flagfile=" + inner + "\n");
  const auto line = ParseCommandLine({"--threads=1", "--flagfile", outer, "--precision=fp32"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.threads, 2);
  EXPECT_EQ(line->options.precision, "fp32");
}

TEST(CommandLine, ErrorsInFilesTellFileAndLine) {
  const std::string path = WriteFile("wrong", "\n--threads=x\n");
  EXPECT_THAT(MessageOf({"--flagfile=" + path}), AllOf(HasSubstr(path + ":2: --threads is 'x'"), HasSubstr("number")));
}

TEST(CommandLine, AFileThatNamesItselfIsRefused) {
  const std::string path = ::testing::TempDir() + "/circle";
  WriteFile("circle", "--flagfile=" + path + "\n");
  EXPECT_THAT(MessageOf({"--flagfile=" + path}), HasSubstr("more than 8 deep"));
}

TEST(CommandLine, UnknownOptionsAreNamedWithTheNearest) {
  EXPECT_THAT(MessageOf({"--max-stream=1"}), HasSubstr("did you mean --max-streams?"));
  EXPECT_EQ(MessageOf({"--something-else=1"}), "--something-else is not an option");
  EXPECT_THAT(MessageOf({"serve"}), HasSubstr("'serve' is not an option"));
  EXPECT_THAT(MessageOf({"-threads=1"}), HasSubstr("options begin with --"));
  EXPECT_THAT(MessageOf({"--threads"}), HasSubstr("--threads lacks its value"));
}

TEST(CommandLine, WrongValuesAreNamed) {
  EXPECT_THAT(MessageOf({"--threads=1.5"}), HasSubstr("--threads is '1.5'; it must be a whole number"));
  EXPECT_THAT(MessageOf({"--drain-timeout=5"}),
              HasSubstr("--drain-timeout is '5'; it must be a duration with its unit"));
  EXPECT_THAT(MessageOf({"--log-level=all"}), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(MessageOf({"--check-config=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(MessageOf({"--listen=8500"}), HasSubstr("--listen is '8500'"));
}

TEST(CommandLine, HelpTellsEveryDefault) {
  const std::string help = HelpText();
  EXPECT_THAT(help, HasSubstr("--listen=host:port  (default: 127.0.0.1:8500)"));
  EXPECT_THAT(help, HasSubstr("--drain-timeout=duration  (default: 30s)"));
  EXPECT_THAT(help, HasSubstr("--model-repository=DIR  (no default)"));
  EXPECT_TRUE(ParseCommandLine({"--help"})->help);
  EXPECT_TRUE(ParseCommandLine({"--version"})->version);
}

}  // namespace
}  // namespace longshort
