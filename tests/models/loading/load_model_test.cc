// What loading asks before it reads weights.

#include "models/loading/load_model.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/classifiers/random_text_model.h"

namespace longshort::models::load_model_test {

TEST(LoadModel, AClassifierNeedsFloat32OnTheHostWhateverItsGpusComputeIn) {
  const TemporaryDirectory directory;
  WriteTextModel(directory.path(), SmallTextConfig(), /*seed=*/1);
  const auto asked = [&](const std::string& precision) {
    std::pair<int64_t, int64_t> bytes;
    const LoadGuard guard = {.check_room = [&](int64_t host_bytes, int64_t gpu_bytes) {
      bytes = {host_bytes, gpu_bytes};
      return absl::ResourceExhaustedError("no room");
    }};
    const LoadOptions options = {.precision = precision, .devices = {{.kind = DeviceKind::kCuda}}};
    EXPECT_EQ(LoadModel(directory.path(), options, guard).status().code(), absl::StatusCode::kResourceExhausted);
    return bytes;
  };
  const auto [host_bytes, gpu_bytes] = asked("fp32");
  EXPECT_GT(host_bytes, 0);
  EXPECT_EQ(gpu_bytes, host_bytes);
  EXPECT_EQ(asked("bf16"), std::pair(host_bytes, host_bytes / 2));
  EXPECT_EQ(asked("int8"), asked("bf16")) << "GPUs compute in bfloat16 then";
}

}  // namespace longshort::models::load_model_test
