#include "server/log/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace longshort {
namespace {

const absl::Time kTime = absl::FromUnixMillis(1700000000123);

TEST(LogLine, TextHasTimeLevelMessageAndFields) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kTime, LogLevel::kInfo, "request",
                          {{"id", "a:1"}, {"tokens", int64_t{5}}, {"s", 0.5}}),
            "2023-11-14T22:13:20.123Z info request id=a:1 tokens=5 s=0.5");
}

TEST(LogLine, TextQuotesWhatWouldBreakTheLine) {
  const std::string line = FormatLogLine(LogFormat::kText, kTime, LogLevel::kError, "x\ny",
                                         {{"a", "two words"}, {"b", "new\nline"}, {"c", ""}});
  EXPECT_THAT(line, ::testing::EndsWith(R"(error x\ny a="two words" b="new\nline" c="")"));
}

TEST(LogLine, JsonReadsBack) {
  const std::string line = FormatLogLine(LogFormat::kJson, kTime, LogLevel::kWarning, "a \"b\"\n",
                                         {{"text", "\\\x01"}, {"count", int64_t{-1}}, {"seconds", 1.25}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["message"], "a \"b\"\n");
  EXPECT_EQ(json["text"], "\\\x01");
  EXPECT_EQ(json["count"], -1);
  EXPECT_EQ(json["seconds"], 1.25);
}

TEST(LogLine, BytesThatAreNotUtf8AreReplaced) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = FormatLogLine(format, kTime, LogLevel::kInfo, "m\xff", {{"field", "\xc3("}});
    EXPECT_THAT(line, ::testing::HasSubstr("\xEF\xBF\xBD("));
    EXPECT_EQ(line.find('\xff'), std::string::npos);
  }
}

TEST(Logger, WritesFromItsLevelOn) {
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kText, LogLevel::kWarning);
  log.Info("too little");
  log.Error("enough");
  log.Flush();
  log.Error("after the end");
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, ::testing::EndsWith("error enough\n"));
  EXPECT_EQ(written.find("too little"), std::string::npos);
}

}  // namespace
}  // namespace longshort
