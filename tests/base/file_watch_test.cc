#include "base/file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semaphore>
#include <string>
#include <vector>

namespace longshort::file_watch_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A "file" that holds `content_`; content that begins with "bad" cannot be used.
class FileWatchTest : public ::testing::Test {
 protected:
  FileWatch::Options Options() {
    return {.read = [this] { return content_; },
            .use = [this](const std::string& text) -> absl::Status {
              if (text.rfind("bad", 0) == 0) return absl::InvalidArgumentError(text);
              used_.push_back(text);
              return absl::OkStatus();
            },
            .report = [this](const absl::Status& status) { reported_.push_back(status.ToString()); }};
  }
  void LookTwice() {
    watch_.Look();
    watch_.Look();
  }

  absl::StatusOr<std::string> content_ = "one";
  std::vector<std::string> used_;
  std::vector<std::string> reported_;
  FileWatch watch_{Options(), "one"};
};

TEST_F(FileWatchTest, UsesWhatTwoLooksSaw) {
  LookTwice();
  EXPECT_THAT(used_, IsEmpty()) << "it is in use";
  content_ = "tw";
  watch_.Look();
  content_ = "two";
  watch_.Look();
  EXPECT_THAT(used_, IsEmpty()) << "its writer had not finished";
  watch_.Look();
  EXPECT_THAT(used_, ElementsAre("two"));
  LookTwice();
  EXPECT_THAT(used_, ElementsAre("two"));
  EXPECT_THAT(reported_, ElementsAre("OK"));
}

TEST_F(FileWatchTest, ReportsAnErrorOnceAndItsEnd) {
  content_ = "bad";
  for (int i = 0; i < 5; ++i) watch_.Look();
  content_ = absl::NotFoundError("gone");
  for (int i = 0; i < 5; ++i) watch_.Look();
  EXPECT_THAT(reported_, ElementsAre("INVALID_ARGUMENT: bad", "NOT_FOUND: gone"));
  EXPECT_THAT(used_, IsEmpty());
  content_ = "one";
  LookTwice();
  EXPECT_THAT(reported_, ElementsAre("INVALID_ARGUMENT: bad", "NOT_FOUND: gone", "OK"));
}

TEST(FileWatch, LooksByItselfOnceStarted) {
  std::binary_semaphore used(0);
  FileWatch watch({.read = [] { return "two"; },
                   .use =
                       [&](const std::string&) {
                         used.release();
                         return absl::OkStatus();
                       },
                   .report = [](const absl::Status&) {},
                   .interval = absl::Milliseconds(1)},
                  "one");
  ASSERT_TRUE(watch.Start("the thread of a test").ok());
  used.acquire();
}

}  // namespace longshort::file_watch_test
