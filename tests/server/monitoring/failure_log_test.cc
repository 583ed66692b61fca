#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/monitoring/logger.h"

namespace longshort::server::failure_log_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;

TEST(FailureLog, SaysWhyAndOfManyWithinASecondHowMany) {
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kText, LogLevel::kInfo);
  ASSERT_TRUE(log.Start().ok());
  FailureLog failures(log, "m");
  absl::Time now = absl::UnixEpoch();
  failures.StepFailed(absl::InternalError("no such operator"), now);
  for (int failure = 0; failure < 3; ++failure) failures.StepFailed(absl::InternalError("again"), now);
  failures.WorkerNotRebuilt(absl::ResourceExhaustedError("no memory"), now);
  now += absl::Seconds(1);
  failures.StepFailed(absl::InternalError("and again"), now);
  now += absl::Seconds(1);
  failures.StepFailed(absl::InternalError("again"), now);
  log.Flush(absl::Minutes(5));
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(
      lines,
      ElementsAre(
          EndsWith(R"(error step failed model=m code=INTERNAL error="no such operator")"),
          EndsWith(
              R"(error worker has no model; it retries every second model=m code=RESOURCE_EXHAUSTED error="no memory")"),
          EndsWith(R"(error step failed model=m code=INTERNAL error="and again" left_out=3)"),
          EndsWith(R"(error step failed model=m code=INTERNAL error=again)")));
}

TEST(Logger, WritesAsManyLinesOfAKindASecondAsItMay) {
  ::testing::internal::CaptureStderr();
  Logger log(LogFormat::kText, LogLevel::kInfo);
  ASSERT_TRUE(log.Start().ok());
  int built = 0;
  const auto fields = [&built] { return LogFields{{"line", int64_t{built++}}}; };
  absl::Time now = absl::UnixEpoch();
  for (int line = 0; line < 5; ++line) log.LogLimited("kind", 3, now, LogLevel::kInfo, "said", fields);
  log.LogLimited("other kind", 3, now, LogLevel::kInfo, "said", fields);
  log.LogLimited("kind", 3, now, LogLevel::kDebug, "said", fields);
  now += absl::Seconds(1);
  log.LogLimited("kind", 3, now, LogLevel::kInfo, "said", fields);
  log.Flush(absl::Minutes(5));
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, ElementsAre(EndsWith("said line=0"), EndsWith("said line=1"), EndsWith("said line=2"),
                                 EndsWith("said line=3"), EndsWith("said line=4 left_out=2")));
}

}  // namespace longshort::server::failure_log_test
