#include "server/lifecycle/port_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::server::port_file_test {

namespace fs = std::filesystem;

class PortFileTest : public testing::Test {
 protected:
  PortFileTest() { fs::create_directories(folder_); }
  ~PortFileTest() override { fs::remove_all(folder_); }

  std::string Read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void ExpectOnly(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    EXPECT_THAT(names, testing::ElementsAre(name));
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "port_file";
  const fs::path path_ = folder_ / "ports.json";
};

TEST_F(PortFileTest, IsThereOnceItIsWritten) {
  for (int port = 1; port <= 2; ++port) {  // the first one's file goes when the second begins
    auto file = PortFile::Create(path_.string());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(fs::exists(path_));
    ASSERT_TRUE((*file)->Write(port, 3).ok());
    EXPECT_EQ(Read(), port == 1 ? "{\"grpc\": 1, \"http\": 3}\n" : "{\"grpc\": 2, \"http\": 3}\n");
    file->reset();
    ExpectOnly("ports.json");
  }
}

TEST_F(PortFileTest, OfAServerThatDoesNotStartNothingStays) {
  { ASSERT_TRUE(PortFile::Create(path_.string()).ok()); }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PortFileTest, WithoutANameThereIsNoFile) {
  const auto file = PortFile::Create("");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->Write(1, 2).ok());
}

// /dev/stdout is one, for every program of a container.
TEST_F(PortFileTest, DoesNotTakeThePlaceOfWhatIsNoFile) {
  const auto expect_refused = [this] {
    const absl::Status status = PortFile::Create(path_.string()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("--port-file=" + path_.string()));
    ExpectOnly("ports.json");
    fs::remove(path_);
  };
  fs::create_symlink("/dev/null", path_);
  expect_refused();
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_refused();
  fs::create_directory(path_);
  expect_refused();
}

TEST_F(PortFileTest, WhatCannotBeWrittenIsKnownAtOnce) {
  const absl::Status status = PortFile::Create((folder_ / "missing" / "ports.json").string()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("missing/ports.json cannot be written"));
}

}  // namespace longshort::server::port_file_test
