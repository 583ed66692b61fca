#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/safetensors.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/weights/tensor_bytes.h"

namespace longshort::models::safetensors_writer_test {

using Words = std::vector<std::string>;

std::string ReadAll(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

// Tensors of random types, shapes and bytes, with the storage that they point into.
struct RandomTensors {
  explicit RandomTensors(uint32_t seed) {
    std::mt19937 random(seed);
    const std::vector<DataType> types = {DataType::kU8, DataType::kBF16, DataType::kF32, DataType::kI64,
                                         DataType::kBool};
    const size_t count = random() % 8;
    for (size_t i = 0; i < count; ++i) {
      NamedTensor tensor{"tensor \"" + std::to_string(i) + "\"\n", types[random() % types.size()], {}, {}};
      for (size_t rank = random() % 4; rank > 0; --rank) tensor.shape.push_back(random() % 5);
      storage.emplace_back(*TensorBytes(tensor.shape, tensor.type));
      for (std::byte& byte : storage.back()) byte = std::byte(random());
      tensors.push_back(tensor);
    }
    for (size_t i = 0; i < count; ++i) tensors[i].data = storage[i];
  }

  std::vector<std::vector<std::byte>> storage;
  std::vector<NamedTensor> tensors;
};

TEST(SafetensorsWriter, WhatIsWrittenIsReadBack) {
  const TemporaryDirectory directory;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const RandomTensors random(seed);
    ASSERT_THAT(WriteSafetensors(directory.File("t"), random.tensors, {{"step", std::to_string(seed)}}), IsOk());
    const auto file = SafetensorsFile::Open(directory.File("t"));
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(file->tensors().size(), random.tensors.size());
    EXPECT_EQ(file->metadata().at("step"), std::to_string(seed));
    for (const NamedTensor& tensor : random.tensors) {
      const StoredTensor* found = file->Find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(found->type, tensor.type);
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_EQ(absl::MakeConstSpan(BytesOf(*file, *found)), tensor.data);
      EXPECT_EQ(8 * found->offset % DataTypeBits(tensor.type), 0) << "not aligned";
    }
  }
}

TEST(SafetensorsWriter, TheSameInputGivesTheSameBytes) {
  const TemporaryDirectory directory;
  const RandomTensors random(7);
  ASSERT_THAT(WriteSafetensors(directory.File("a"), random.tensors), IsOk());
  ASSERT_THAT(WriteSafetensors(directory.File("b"), random.tensors), IsOk());
  EXPECT_EQ(ReadAll(directory.File("a")), ReadAll(directory.File("b")));
}

TEST(SafetensorsWriter, ReplacesAFileAndLeavesNoOther) {
  const TemporaryDirectory directory;
  directory.Write("t", "old");
  ASSERT_THAT(WriteSafetensors(directory.File("t"), {}), IsOk());
  EXPECT_THAT(SafetensorsFile::Open(directory.File("t")), IsOk());
  const std::filesystem::directory_iterator entries(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(SafetensorsWriter, RefusesWhatTheReaderWould) {
  const TemporaryDirectory directory;
  const std::vector<std::byte> bytes(8);
  const auto write = [&](const std::vector<NamedTensor>& tensors) {
    return WriteSafetensors(directory.File("t"), tensors);
  };
  EXPECT_THAT(write({{"a", DataType::kF32, {3}, bytes}}), Refuses(Words{"'a'", "8 bytes"}));
  EXPECT_THAT(write({{"a", DataType::kF32, {-2}, bytes}}), Refuses(Words{"'a'"}));
  EXPECT_THAT(write({{"a", DataType::kF32, {2}, bytes}, {"a", DataType::kF32, {2}, bytes}}),
              Refuses(Words{"'a'", "twice"}));
  EXPECT_THAT(write({{"__metadata__", DataType::kF32, {2}, bytes}}), Refuses(Words{"__metadata__"}));
  EXPECT_THAT(write({{"\xFF", DataType::kF32, {2}, bytes}}), Refuses(Words{"not UTF-8"}));
  EXPECT_FALSE(std::filesystem::exists(directory.File("t")));
}

TEST(SafetensorsWriter, NamesAPathThatCannotBeWritten) {
  const absl::Status status = WriteSafetensors("/nonexistent/directory/t", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/nonexistent/directory/t"));
}

}  // namespace longshort::models::safetensors_writer_test
