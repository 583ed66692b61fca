// A fresh folder for a test's training data and results.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace longshort::models {

class TrainingFolder {
 public:
  TrainingFolder() : path_(MakePath()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Returns the path.
  std::string Write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = Path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  static std::string MakePath() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    return ::testing::TempDir() + "/" + test.test_suite_name() + "." + test.name();
  }

  std::string path_;
};

}  // namespace longshort::models
