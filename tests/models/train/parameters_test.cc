#include "models/train/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::parameters_test {

using ::testing::HasSubstr;

TEST(InitialParametersTest, TheSeedDecidesAndRunningStatisticsAreNotTrained) {
  const std::vector<TensorShape> tensors = {{"a.weight", {3, 4}}, {"a.running_mean", {4}, /*is_trained=*/false}};
  const auto parameters = InitialParameters(tensors, 7);
  EXPECT_TRUE(parameters[0].value.requires_grad());
  EXPECT_FALSE(parameters[1].value.requires_grad());
  EXPECT_TRUE(at::equal(parameters[0].value, InitialParameters(tensors, 7)[0].value));
  EXPECT_FALSE(at::equal(parameters[0].value, InitialParameters(tensors, 8)[0].value));
}

TEST(CopyStoredTest, CopiesAllOrChangesNone) {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/stored.safetensors";
  const at::Tensor stored = at::arange(4, at::kFloat);
  const at::Tensor square = stored.view({2, 2});
  ASSERT_TRUE(WriteSafetensors(path, {AsNamed("first", stored), AsNamed("second", square)}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();

  std::vector<NamedParameter> tensors = {{"first", at::zeros({4})}, {"second", at::zeros({4})}};
  const absl::Status other_shape = CopyStored(*file, tensors);
  EXPECT_EQ(other_shape.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other_shape.message()), HasSubstr("tensor second"));
  EXPECT_TRUE(at::equal(tensors[0].value, at::zeros({4})));

  tensors[1].value = at::zeros({2, 2});
  ASSERT_TRUE(CopyStored(*file, tensors).ok());
  EXPECT_TRUE(at::equal(tensors[0].value, stored));
  EXPECT_TRUE(at::equal(tensors[1].value, square));
}

}  // namespace longshort::models::parameters_test
