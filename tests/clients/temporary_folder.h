// A folder of files that a test makes and that is gone afterwards.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace longshort::client {

class TemporaryFolder final {
 public:
  // One for each test: its name is part of the folder's.
  TemporaryFolder()
      : path_(std::filesystem::path(testing::TempDir()) /
              (std::string("longshort_") + testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() +
               "_" + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  // Writes a file, with the folders on its way. Returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace longshort::client
