#include "models/images/quiet_standard_error.h"

#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/decode_image.h"
#include "tests/models/images/image_files.h"

namespace longshort {
namespace {

void Print(const std::string& line) {
  std::fprintf(stderr, "%s by stdio\n", line.c_str());
  std::cerr << line << " by stream" << std::endl;
}

TEST(QuietStandardError, DropsWhatItsThreadPrintsWhileItLives) {
  testing::internal::CaptureStderr();
  {
    const QuietStandardError quiet;
    { const QuietStandardError nested; }
    Print("mine");
    std::thread(Print, "another's").join();
  }
  Print("later");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "another's by stdio\nanother's by stream\nlater by stdio\nlater by stream\n");
}

// Cut files, and such with other bytes in their middle.
TEST(QuietStandardError, DecodingBrokenImagesPrintsNothing) {
  testing::internal::CaptureStderr();
  int refused = 0;
  for (const std::string& name : ImageFileNames()) {
    const std::string whole = ReadImageFile(name);
    for (size_t place = whole.size() / 4; place < whole.size(); place += 1 + whole.size() / 16) {
      std::string changed = whole;
      changed[place] = static_cast<char>(~changed[place]);
      refused += DecodeImage(changed, {}).ok() ? 0 : 1;
      refused += DecodeImage(whole.substr(0, place), {}).ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace longshort
