#include "server/monitoring/logger.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace longshort::server::logger_test {

// Far longer than a busy machine takes.
constexpr absl::Duration kLong = absl::Minutes(5);
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
  ASSERT_TRUE(log.Start().ok());
  log.Info("too little");
  log.Error("enough");
  log.Flush(kLong);
  log.Error("after the end");
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, ::testing::EndsWith("error enough\n"));
  EXPECT_EQ(written.find("too little"), std::string::npos);
}

TEST(Logger, WritesEveryLineAndEachThreadsInOrder) {
  constexpr int kThreads = 4;
  constexpr int64_t kLines = 1000;
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kJson, LogLevel::kInfo);
  ASSERT_TRUE(log.Start().ok());
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&log, thread] {
      for (int64_t n = 0; n < kLines; ++n) log.Info(absl::StrCat("thread ", thread), {{"n", n}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  log.Flush(kLong);
  std::map<std::string, int64_t> next;
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["n"], next[json["message"]]++);
  }
  ASSERT_EQ(next.size(), kThreads);
  for (const auto& [thread, count] : next) EXPECT_EQ(count, kLines) << thread;
}

TEST(Logger, HoldsMemoryForLinesUntilTheyAreWritten) {
  const auto budget = std::make_shared<Budget>(1000, Budget::Names{.holders = "lines", .unit = "bytes"});
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kText, LogLevel::kInfo);
  log.Info(std::string(2000, 'x'));
  EXPECT_EQ(budget->held(), 0);
  log.ChargeTo(budget);
  const int64_t first = budget->held();
  EXPECT_GE(first, 2000);
  log.Info("text", {{"key", std::string(3000, 'y')}});
  EXPECT_GE(budget->held(), first + 3000);
  ASSERT_TRUE(log.Start().ok());
  log.Flush(kLong);
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(budget->held(), 0);
}

TEST(Logger, DropsTheOldestLinesThatTakeTooMuchMemory) {
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kText, LogLevel::kInfo);
  for (int n = 0; n < 20; ++n) log.Info(absl::StrCat(std::string(1 << 20, 'x'), " line", n));
  ASSERT_TRUE(log.Start().ok());
  log.Flush(kLong);
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, ::testing::AllOf(::testing::HasSubstr(" log lines lost lines=17\n"),
                                        ::testing::HasSubstr(" line17\n"), ::testing::EndsWith(" line19\n")));
  EXPECT_THAT(written, ::testing::Not(::testing::HasSubstr(" line12\n")));
}

// A pipe without a reader holds 64 KiB. Callers of Log do not wait for it, and the last lines are kept.
TEST(Logger, DropsTheOldestLinesWhenStandardErrorIsStuck) {
  constexpr int64_t kLines = 40'000;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int standard_error = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  Logger log(LogFormat::kText, LogLevel::kInfo);
  ASSERT_TRUE(log.Start().ok());
  for (int64_t n = 0; n < kLines; ++n) log.Info("line", {{"n", n}});
  log.Flush(absl::Milliseconds(1));  // returns before anything is read

  std::string written;
  std::thread reader([&written, from = ends[0]] {
    std::array<char, 1 << 16> some{};
    for (ssize_t count = 0; (count = read(from, some.data(), some.size())) > 0;) written.append(some.data(), count);
  });
  log.Flush(kLong);
  dup2(standard_error, STDERR_FILENO);  // the pipe ends
  reader.join();
  close(standard_error);
  close(ends[0]);
  EXPECT_THAT(written, ::testing::EndsWith(absl::StrCat("n=", kLines - 1, "\n")));
  // 8192 that waited, as many in the writer's hands, and what the pipe took before.
  EXPECT_LT(std::count(written.begin(), written.end(), '\n'), 20'000);
}

// A file that may not become longer is as a full disk; then it is emptied, as who finds the disk full does.
TEST(Logger, SaysHowManyLinesWereLostAndBeginsANewOne) {
  constexpr rlim_t kRoom = 100;
  const auto line = [](int64_t n) { return absl::StrCat(" info line n=", n, "\n"); };
  std::FILE* const full = std::tmpfile();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto before = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = kRoom, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const int standard_error = dup(STDERR_FILENO);
  dup2(fileno(full), STDERR_FILENO);
  fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
  std::string cut(kRoom + 1, '\0');
  std::string after(1000, '\0');
  {
    const auto unwritten = std::make_shared<Budget>(1000, Budget::Names{.holders = "lines", .unit = "bytes"});
    Logger log(LogFormat::kText, LogLevel::kInfo);
    log.ChargeTo(unwritten);
    for (int64_t n = 0; n < 4; ++n) log.Info("line", {{"n", n}});  // about 40 bytes each: the third is cut
    ASSERT_TRUE(log.Start().ok());
    while (unwritten->held() > 0) absl::SleepFor(absl::Milliseconds(1));  // until it has tried to write all four
    cut.resize(pread(fileno(full), cut.data(), cut.size(), 0));
    EXPECT_EQ(ftruncate(fileno(full), 0), 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    log.Info("line", {{"n", int64_t{4}}});
    log.Flush(kLong);
  }
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  signal(SIGXFSZ, before);
  after.resize(pread(fileno(full), after.data(), after.size(), 0));
  std::fclose(full);
  EXPECT_THAT(cut, ::testing::AllOf(::testing::HasSubstr(line(0)), ::testing::HasSubstr(line(1))));
  EXPECT_THAT(after, ::testing::StartsWith("\n20")) << "the end of the line that was cut, then a time";
  EXPECT_THAT(after, ::testing::HasSubstr(" warning log lines lost lines=2\n"));
  EXPECT_THAT(after, ::testing::EndsWith(line(4)));
}

// Another process that shares standard error may have made it non-blocking.
TEST(Logger, WaitsForAStandardErrorThatDoesNotBlock) {
  constexpr int64_t kLines = 8000;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  const int standard_error = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  std::string written;
  std::thread reader;
  {
    Logger log(LogFormat::kText, LogLevel::kInfo);
    ASSERT_TRUE(log.Start().ok());
    for (int64_t n = 0; n < kLines; ++n) log.Info("line", {{"n", n}});
    pollfd pipe = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    while (poll(&pipe, 1, 0) == 1) absl::SleepFor(absl::Milliseconds(1));  // until it is full
    reader = std::thread([&written, from = ends[0]] {
      std::array<char, 1 << 16> some{};
      for (ssize_t count = 0; (count = read(from, some.data(), some.size())) > 0;) written.append(some.data(), count);
    });
    log.Flush(kLong);
  }
  dup2(standard_error, STDERR_FILENO);
  reader.join();
  close(standard_error);
  close(ends[0]);
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), kLines);
}

// Anyone can cause any number of failed handshakes.
TEST(LibraryLogs, OfManyLinesOfGrpcOneIsWritten) {
  ::testing::internal::CaptureStderr();
  static Logger& log = *new Logger(LogFormat::kText, LogLevel::kInfo);
  ASSERT_TRUE(log.Start().ok());
  CaptureLibraryLogs(log);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // gRPC logs nothing before it is initialised
  for (int line = 0; line < 100; ++line) gpr_log("call.cc", 1, GPR_LOG_SEVERITY_ERROR, "error %d", line);
  gpr_log("call.cc", 2, GPR_LOG_SEVERITY_ERROR, "another");
  for (int line = 0; line < 100; ++line) gpr_log("tls.cc", 1, GPR_LOG_SEVERITY_ERROR, "Handshake failed: %d", line);
  log.Flush(kLong);
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, ::testing::ElementsAre(::testing::EndsWith(R"(error gRPC error="error 0")"),
                                            ::testing::EndsWith("error gRPC error=another"),
                                            ::testing::EndsWith(R"(info client refused why="Handshake failed: 0")")));
}

}  // namespace longshort::server::logger_test
