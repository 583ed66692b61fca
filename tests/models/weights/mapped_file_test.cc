#include "models/weights/mapped_file.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/models/weights/status_matchers.h"
#include "tests/models/weights/temporary_directory.h"

namespace longshort {
namespace {

// Whoever writes a file in place cuts it first. What is mapped would end the process.
TEST(ReadTextFile, AFileThatIsCutWhileItIsReadIsReadAsFarAsItGoes) {
  const TemporaryDirectory directory;
  constexpr size_t kBytes = size_t{1} << 20;
  const std::string path = directory.Write("serving.json", std::string(kBytes, ' '));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) EXPECT_EQ(truncate(path.c_str(), 0) + truncate(path.c_str(), kBytes), 0);
  });
  for (int i = 0; i < 1000; ++i) {
    const auto text = ReadTextFile(path, kBytes);
    ASSERT_THAT(text, IsOk());
    EXPECT_LE(text->size(), kBytes);
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace longshort
