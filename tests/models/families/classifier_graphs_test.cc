// Batches of classifiers that run as graphs have the bits of those that run without, on the tested GPU.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "c10/core/InferenceMode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/load_options.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "models/ops/layers/linear.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/families/language_model/tested_backends.h"
#include "tests/models/families/text_classifier/random_text_model.h"
#include "tests/models/families/vil/random_vil.h"

namespace longshort::models::classifier_graphs_test {

constexpr int64_t kHeadWidth = 32, kImage = 32;

class ClassifierGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_.gpus == nullptr) GTEST_SKIP() << "the emulator is not for this processor";
  }

  std::unique_ptr<GpuItemAttention> MakeAttention() const {
    return gpu_.gpus->MakeItemAttention(gpu_.device, kHeadWidth).value();
  }
  // The network on the GPU.
  template <typename Network>
  Network OnGpu(Network network, at::ScalarType type) const {
    gpu_.gpus->BeginLoading(gpu_.device);
    TensorMove move = TensorMove::ForGpu(TensorDevice(gpu_.device), type);
    network.MoveBy(move);
    return network;
  }
  // Runs batches that fill the buckets of 2 images and of 1, by a worker with graphs and by one without.
  template <typename Network, typename Features>
  void ExpectSameBits(const Network& network, const Features& features) const {
    const std::unique_ptr<GpuItemAttention> graphs = MakeAttention(), eager = MakeAttention();
    const auto layers = [&](GpuItemAttention& attention) -> GpuItemAttention::ImageLayers {
      return
          [&](const at::Tensor& images) { return network.head(features(network, images, attention)).to(at::kFloat); };
    };
    ASSERT_TRUE(graphs->PrepareImages({.channels = 3, .height = kImage, .width = kImage}, layers(*graphs)).ok());
    std::vector<ImageItem> images;
    for (const at::Tensor& image : RandomImages(2, kImage, kImage, /*seed=*/2).unbind(0)) {
      images.push_back(std::get<ImageItem>(ImageItemOf(image)));
    }
    const auto run = [&](GpuItemAttention& attention, const std::vector<const ImageItem*>& batch, bool prepared) {
      const absl::Span<const float> rows = attention.RunImages(batch, 3, layers(attention), prepared);
      return std::vector<float>(rows.begin(), rows.end());
    };
    for (const std::vector<const ImageItem*>& batch :
         {std::vector<const ImageItem*>{&images[0], &images[1]}, {&images[1]}}) {
      const std::vector<float> expected = run(*eager, batch, /*prepared=*/false);
      EXPECT_EQ(run(*graphs, batch, /*prepared=*/true), expected);
      EXPECT_EQ(run(*graphs, batch, /*prepared=*/false), expected);
    }
  }

  const c10::InferenceMode inference_;
  const TestedGpu gpu_ = GpuOfTests();
};

TEST_F(ClassifierGraphs, OfImagesHaveTheBitsOfBatchesWithout) {
  const CvtConfig cvt_config = SmallCvt();
  CvtNetwork cvt = NetworkOver(cvt_config, RandomCvtTensors(cvt_config, /*seed=*/1));
  cvt.PrepareForServing();
  const VilConfig vil_config =
      VilOf("l1,h2,d24,n1,s1,g1,p4,f4,a0,r3_l2,h2,d32,n1,s0,g1,p2,f4,a0_l3,h2,d32,n1,s0,g0,p1,f4,a0", kImage);
  const VilNetwork vil = NetworkOver(vil_config, RandomVilTensors(vil_config, /*seed=*/1));
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(type);
    ExpectSameBits(OnGpu(cvt, type), [](const CvtNetwork& network, const at::Tensor& images, ItemAttention& attention) {
      return network.Features(images, /*statistics=*/nullptr, attention);
    });
  }
  ExpectSameBits(OnGpu(vil, at::kBFloat16),
                 [](const VilNetwork& network, const at::Tensor& images, ItemAttention& attention) {
                   return network.Features(images, attention);
                 });
}

TEST_F(ClassifierGraphs, OfDocumentsHaveTheBitsOfBatchesWithout) {
  // Each fills a bucket of 64 rows.
  const std::vector<int32_t> longer(34, 5), shorter(30, 7), alone(40, 3);
  for (const ClsKind cls : {ClsKind::kNone, ClsKind::kAllLayers}) {
    TextClassifierConfig config = SmallTextConfig();
    config.cls = cls;
    config.value_convolution = cls == ClsKind::kNone ? 3 : 0;
    const auto tensors = RandomTextTensors(config, /*seed=*/1);
    const TextNetwork plain = MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(cls), " ", at::toString(type)));
      const TextNetwork network = OnGpu(plain, type);
      const std::unique_ptr<GpuItemAttention> graphs = MakeAttention(), eager = MakeAttention();
      const auto layers = [&](GpuItemAttention& attention) -> GpuItemAttention::DocumentLayers {
        return [&](const DocumentTokens& documents) {
          return network.Run(ClassifierOutput::kLogits, documents, attention);
        };
      };
      ASSERT_TRUE(graphs->PrepareDocuments(/*item_documents=*/1, network.Windows(), layers(*graphs)).ok());
      const auto run = [&](GpuItemAttention& attention, bool prepared,
                           const std::vector<absl::Span<const int32_t>>& documents) {
        const absl::Span<const float> rows =
            attention.RunDocuments(network.PackForGpu(documents), layers(attention), prepared);
        return std::vector<float>(rows.begin(), rows.end());
      };
      const std::vector<float> expected = run(*eager, /*prepared=*/false, {longer, shorter});
      EXPECT_EQ(run(*graphs, /*prepared=*/true, {longer, shorter}), expected);
      run(*graphs, /*prepared=*/true, {alone});
      EXPECT_EQ(run(*graphs, /*prepared=*/true, {longer, shorter}), expected) << "after another batch";
    }
  }
}

// A value cannot be read while the stream captures. The emulated device has tensors on the CPU, where it can.
TEST_F(ClassifierGraphs, ThatCannotBeCapturedLeaveAWorkerThatRunsWithoutThem) {
  if (gpu_.device.kind != DeviceKind::kCuda) GTEST_SKIP() << "needs a GPU";
  const std::unique_ptr<GpuItemAttention> attention = MakeAttention();
  const GpuItemAttention::ImageLayers layers = [](const at::Tensor& images) {
    const at::Tensor sums = images.flatten(1).sum(1, /*keepdim=*/true);
    return sums * (sums.sum().item<float>() > 0 ? 2 : 3);
  };
  EXPECT_EQ(attention->PrepareImages({.channels = 1, .height = 1, .width = 2}, layers).code(),
            absl::StatusCode::kInternal);
  const ImageItem image = {.height = 1, .width = 2, .values = {1, 2}};
  EXPECT_THAT(attention->RunImages({&image}, 1, layers, /*prepared=*/true), ::testing::ElementsAre(6));
}

}  // namespace longshort::models::classifier_graphs_test
