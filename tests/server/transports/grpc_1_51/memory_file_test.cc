#include "server/transports/grpc_1_51/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/base/status_matchers.h"

namespace longshort::server::memory_file_test {

std::string RestOf(std::istream& file) { return {std::istreambuf_iterator<char>(file), {}}; }

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return RestOf(file);
}

time_t TimeOf(const std::string& path) {
  struct stat file {};
  EXPECT_EQ(stat(path.c_str(), &file), 0);
  return file.st_mtime;
}

TEST(MemoryFile, HoldsWhatWasWrittenLast) {
  auto file = MemoryFile::Create();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ContentOf(file->path()), "");
  const std::string long_text(1 << 20, 'x');
  ASSERT_TRUE(file->Write(long_text).ok());
  EXPECT_EQ(ContentOf(file->path()), long_text);
  ASSERT_TRUE(file->Write("short").ok());
  EXPECT_EQ(ContentOf(file->path()), "short");
}

TEST(MemoryFile, AReaderThatHasOpenedItReadsThatContentToItsEnd) {
  auto file = MemoryFile::Create();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("before").ok());
  std::ifstream opened(file->path(), std::ios::binary);
  ASSERT_TRUE(file->Write("after").ok());
  EXPECT_EQ(RestOf(opened), "before");
  EXPECT_EQ(ContentOf(file->path()), "after");
}

// gRPC compares times in whole seconds to notice a file that changed while it read the others.
TEST(MemoryFile, EveryWriteHasItsSecond) {
  auto file = MemoryFile::Create();
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("one").ok());
  const time_t first = TimeOf(file->path());
  ASSERT_TRUE(file->Write("two").ok());
  EXPECT_NE(TimeOf(file->path()), first);
}

}  // namespace longshort::server::memory_file_test
