#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/lifecycle/run.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/language_model/emulated_backends.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::server::model_loader_test {

TEST(ModelLoader, OnlyTheWorkersOfAGpuCaptureGraphs) {
  const TemporaryDirectory directory;
  models::WriteTextModel(directory.path(), models::SmallTextConfig(), /*seed=*/1);
  int opened = 0;
  const models::EmulatedBackends gpus({}, [&opened](models::EmulatedDevice&) { ++opened; });
  const models::WorkerDevice gpu = {.kind = models::DeviceKind::kEmulated};
  absl::StatusOr<models::LoadedModel> loaded = MakeModelLoader({}, &gpus)(directory.path(), {gpu}, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(opened, 0) << "a warm-up would capture all graphs, and free them";
  ASSERT_TRUE(std::get<models::LoadedClassifier>(*loaded).weights.NewReplica(gpu).ok());
  EXPECT_EQ(opened, 1);
}

}  // namespace longshort::server::model_loader_test
