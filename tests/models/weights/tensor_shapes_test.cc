#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/safetensors.h"
#include "models/weights/tensors.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::tensor_shapes_test {

using Words = std::vector<std::string>;

std::vector<TensorShape> Expected() {
  return {{"norm.weight", {6}}, {"norm.bias", {6}}, {"map.weight", {5, 6}}, {"map.bias", {5}}};
}

TEST(TensorShapes, CountTheirElements) { EXPECT_EQ(CountParameters(Expected()), 6 + 6 + 30 + 5); }

// A weights file that a test then spoils.
class CheckTensorsTest : public ::testing::Test {
 protected:
  CheckTensorsTest() : bytes_(4096) {
    for (const TensorShape& tensor : Expected()) Add(tensor.name, DataType::kF32, tensor.shape);
  }

  void Add(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
    const auto size = static_cast<size_t>(*TensorBytes(shape, type));
    tensors_[name] = {name, type, shape, absl::MakeConstSpan(bytes_).subspan(0, size)};
  }

  absl::Status Check() {
    std::vector<NamedTensor> list;
    for (const auto& entry : tensors_) list.push_back(entry.second);
    const std::string path = directory_.File("model.safetensors");
    if (absl::Status status = WriteSafetensors(path, list); !status.ok()) return status;
    const auto file = SafetensorsFile::Open(path);
    return file.ok() ? CheckTensors(*file, Expected()) : file.status();
  }

  const std::vector<std::byte> bytes_;
  const TemporaryDirectory directory_;
  std::map<std::string, NamedTensor> tensors_;
};

TEST_F(CheckTensorsTest, TakesAWholeModelInAnyFloatType) {
  EXPECT_THAT(Check(), IsOk());
  Add("norm.weight", DataType::kF16, {6});
  Add("norm.bias", DataType::kBF16, {6});
  EXPECT_THAT(Check(), IsOk());
}

TEST_F(CheckTensorsTest, NamesAMissingTensor) {
  tensors_.erase("map.weight");
  EXPECT_THAT(Check(), Refuses(Words{"model.safetensors", "'map.weight' is missing"}));
}

TEST_F(CheckTensorsTest, NamesAnUnknownTensor) {
  Add("norm2.weight", DataType::kF32, {6});
  EXPECT_THAT(Check(), Refuses(Words{"model.safetensors", "'norm2.weight' is unknown"}));
}

// As in the converter.
TEST_F(CheckTensorsTest, PassesOverUnknownTensorsThatAreNoWeights) {
  Add("relative_position_index", DataType::kI64, {6, 6});
  Add("mask", DataType::kBool, {6});
  Add("codes", DataType::kU8, {6});
  EXPECT_THAT(Check(), IsOk());
  Add("table", DataType::kC64, {6});
  EXPECT_THAT(Check(), Refuses(Words{"'table' is unknown"}));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherShape) {
  Add("map.weight", DataType::kF32, {6, 5});
  EXPECT_THAT(Check(), Refuses(Words{"'map.weight'", "[6,5]", "[5,6]"}));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherType) {
  Add("map.bias", DataType::kI32, {5});
  EXPECT_THAT(Check(), Refuses(Words{"'map.bias'", "I32", "F32, F16 or BF16"}));
}

}  // namespace longshort::models::tensor_shapes_test
