#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"

namespace longshort::files_test {

using ::testing::HasSubstr;

std::string ReadAll(const StoredBytes& bytes) {
  std::string text(bytes.size(), '\0');
  EXPECT_THAT(bytes.Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())), IsOk());
  return text;
}

TEST(StoredBytes, ReadsFromWhereItIsAsked) {
  const TemporaryDirectory directory;
  const auto file = StoredBytes::OpenFile(directory.Write("letters", "abcdefgh"));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(ReadAll(*file), "abcdefgh");
  std::string middle(3, '\0');
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(middle.data()), middle.size());
  ASSERT_THAT(file->Read(2, bytes), IsOk());
  EXPECT_EQ(middle, "cde");
  EXPECT_THAT(file->Read(8, {}), IsOk());
  EXPECT_THAT(file->CheckUnchanged(), IsOk());
}

TEST(StoredBytes, ReadingStopsOnRequest) {
  const TemporaryDirectory directory;
  bool stop = false;
  const auto file = StoredBytes::OpenFile(directory.Write("letters", "abcdefgh"), [&stop] { return stop; });
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(ReadAll(*file), "abcdefgh");
  stop = true;
  std::byte byte = {};
  const absl::Status stopped = file->Read(0, {&byte, 1});
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(stopped.message()), HasSubstr(directory.File("letters")));
}

TEST(StoredBytes, AFileThatIsReplacedIsReadOnAsItWas) {
  const TemporaryDirectory directory;
  const auto file = StoredBytes::OpenFile(directory.Write("model", "before"));
  ASSERT_THAT(file, IsOk());
  std::filesystem::rename(directory.Write("next", "behind it"), directory.File("model"));
  EXPECT_EQ(ReadAll(*file), "before");
  EXPECT_THAT(file->CheckUnchanged(), IsOk());
}

TEST(StoredBytes, AFileThatIsCutIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("model", "before");
  const auto file = StoredBytes::OpenFile(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 3), 0);
  std::string text(6, '\0');
  const absl::Status cut = file->Read(0, absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size()));
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(cut.message()), AllOf(HasSubstr(path), HasSubstr("cut short"), HasSubstr("6 bytes")));
}

TEST(StoredBytes, ARewrittenFileIsNoticedWhateverItsLength) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("model", "before");
  const auto file = StoredBytes::OpenFile(path);
  ASSERT_THAT(file, IsOk());
  directory.Write("model", "behind");
  // A file system's clock may be as slow as its kernel's tick.
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::milliseconds(20));
  const absl::Status changed = file->CheckUnchanged();
  EXPECT_EQ(changed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(changed.message()), AllOf(HasSubstr(path), HasSubstr("rename")));
}

TEST(ReadOptionalTextFile, AbsentIsNotTheSameAsALinkToNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("labels.txt", "cat\n");
  EXPECT_EQ(*ReadOptionalTextFile(path, 100), "cat\n");
  EXPECT_EQ(ReadOptionalTextFile(path, 1).status().code(), absl::StatusCode::kInvalidArgument);
  std::filesystem::remove(path);
  EXPECT_EQ(*ReadOptionalTextFile(path, 100), std::nullopt);
  std::filesystem::create_symlink("nowhere", path);
  EXPECT_EQ(ReadOptionalTextFile(path, 100).status(), absl::UnavailableError(path + ": a dangling symbolic link"));
}

TEST(ReadTextFile, AFileThatIsCutWhileItIsReadIsAnErrorAtTheWorst) {
  const TemporaryDirectory directory;
  constexpr size_t kBytes = size_t{1} << 20;
  const std::string path = directory.Write("serving.json", std::string(kBytes, ' '));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) EXPECT_EQ(truncate(path.c_str(), 0) + truncate(path.c_str(), kBytes), 0);
  });
  for (int i = 0; i < 1000; ++i) {
    const auto text = ReadTextFile(path, kBytes);
    EXPECT_TRUE(text.ok() || absl::IsUnavailable(text.status())) << text.status();
  }
  done = true;
  writer.join();
}

// Two files change places all the time. The mode that is checked is that of the file that is read.
TEST(ReadSecretFile, ReadsNoFileThatOthersMayReadWhileFilesChangePlaces) {
  constexpr int kReads = 20'000;
  const TemporaryDirectory directory;
  const std::string path = directory.Write("key", "secret");
  const std::string other = directory.Write("other", "known to others");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(chmod(other.c_str(), 0604), 0);
  std::atomic<bool> over = false;
  std::thread swapper([&] {
    while (!over) renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < kReads; ++i) {
    const absl::StatusOr<std::string> text = ReadSecretFile("--key", path, 100);
    if (text.ok()) {
      EXPECT_EQ(*text, "secret");
    } else {
      EXPECT_THAT(std::string(text.status().message()), HasSubstr("is accessible to all users"));
    }
  }
  over = true;
  swapper.join();
}

}  // namespace longshort::files_test
