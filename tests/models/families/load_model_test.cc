// What loading asks before it reads weights.

#include "models/families/load_model.h"

#include <fstream>
#include <string>
#include <utility>

#include "ATen/Functions.h"
#include "gtest/gtest.h"
#include "models/families/language_model/language_model_config.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::load_model_test {

TEST(LoadModel, AClassifierNeedsFloat32OnTheHostWhateverItsGpusComputeIn) {
  const TemporaryDirectory directory;
  WriteTextModel(directory.path(), SmallTextConfig(), /*seed=*/1);
  const auto asked = [&](const std::string& precision) {
    std::pair<int64_t, int64_t> bytes;
    const LoadGuard guard = {.check_room = [&](const WeightSizes& sizes) {
      bytes = {sizes.loading_bytes, sizes.gpu_bytes};
      EXPECT_EQ(sizes.host_bytes, 0);
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

TEST(LoadModel, ALanguageModelAlsoNeedsRoomForPositionsAndTheRowsOfItsEmbedding) {
  const auto asked = [](const LanguageModelConfig& config, const std::string& precision) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() + "/config.json") << ToJson(config);
    const at::Tensor weights = at::zeros(16);
    EXPECT_TRUE(WriteSafetensors(directory.path() + "/model.safetensors", {AsNamed("weights", weights)}).ok());
    int64_t bytes = 0;
    const LoadGuard guard = {.check_room = [&](const WeightSizes& sizes) {
      EXPECT_TRUE(sizes.loading_bytes == sizes.gpu_bytes || precision == "int8");
      EXPECT_EQ(sizes.host_bytes, sizes.gpu_bytes);
      bytes = sizes.gpu_bytes;
      return absl::ResourceExhaustedError("no room");
    }};
    EXPECT_EQ(LoadModel(directory.path(), {.precision = precision}, guard).status().code(),
              absl::StatusCode::kResourceExhausted);
    return bytes;
  };
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 8;
  config.heads = 2;
  config.feed_forward_width = 8;
  config.chunk_size = 4;
  config.window_length = 8;
  config.memory_length = 16;
  config.segment_length = 8;
  config.vocabulary_size = 10;
  const int64_t positions = 4 * config.PositionTableElements();
  EXPECT_EQ(asked(config, "fp32"), 4 * 16 + positions);
  EXPECT_EQ(asked(config, "bf16"), 2 * 16 + positions + 4 * 10 * 8);
  EXPECT_EQ(asked(config, "int8"), 16 + 1 + positions + 4 * 10 * 8);
}

}  // namespace longshort::models::load_model_test
