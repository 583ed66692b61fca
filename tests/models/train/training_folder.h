// A fresh folder for a test's training data and results.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/base/temporary_directory.h"

namespace longshort::models {

class TrainingFolder {
 public:
  std::string Path(const std::string& name) const { return directory_.File(name); }

  // Returns the path.
  std::string Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    return directory_.Write(name, content);
  }

  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace longshort::models
