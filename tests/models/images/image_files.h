// The images of files/, and their pixels as defined in make_files.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/weights/safetensors.h"
#include "tests/models/weights/tensor_bytes.h"

namespace longshort::models {

inline std::string ReadImageFile(const std::string& name) {
  std::ifstream file(std::filesystem::path(LONGSHORT_TEST_IMAGES) / "files" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> ImageFileNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(LONGSHORT_TEST_IMAGES) + "/files")) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct ExpectedImage {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> values;  // [height, width, 3]
};

// Of a file of that name; empty if there is none.
inline ExpectedImage ReadExpectedImage(const std::string& name) {
  const auto file = SafetensorsFile::Open(std::string(LONGSHORT_TEST_IMAGES) + "/expected.safetensors");
  const StoredTensor* tensor = file.ok() ? file->Find(name) : nullptr;
  if (tensor == nullptr) return {};
  const std::vector<std::byte> bytes = BytesOf(*file, *tensor);
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  return {tensor->shape[0], tensor->shape[1], {begin, begin + bytes.size()}};
}

}  // namespace longshort::models
