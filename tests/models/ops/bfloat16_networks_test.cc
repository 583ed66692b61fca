// Compares the classifiers' networks in bfloat16, on an emulated GPU and on the CPU, with the same networks in float32.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/text_classifier/text_network.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "models/ops/layers/linear.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/families/text_classifier/random_text_model.h"
#include "tests/models/families/vil/random_vil.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::bfloat16_networks_test {

class BFloat16Networks : public ::testing::Test {
 protected:
  template <typename Network>
  static Network InBFloat16(Network network) {
    TensorMove move = TensorMove::ForGpu(at::kCPU, at::kBFloat16);
    network.MoveBy(move);
    return network;
  }
  // As on a CPU with tiles. On other processors, the products are of other kinds.
  template <typename Network>
  static Network Packed(Network network) {
    TensorMove move = TensorMove::Packing(at::kBFloat16);
    network.MoveBy(move);
    return network;
  }

  // Rounding to 8 bits has a relative error of up to 2^-9. The error grows over several layers, and the result must
  // differ.
  static void ExpectRounded(const at::Tensor& found, const at::Tensor& expected) {
    ASSERT_EQ(found.scalar_type(), at::kFloat);
    ASSERT_EQ(found.sizes(), expected.sizes());
    const double change = ((found - expected).norm() / expected.norm()).item<double>();
    EXPECT_LT(change, 0.02);
    EXPECT_GT(change, 1e-4);
  }

  const std::unique_ptr<GpuItemAttention> attention_ =
      MakeGpuItemAttention({.tensors = at::kCPU, .open = [] { return MakeEmulatedDevice(); }, .loss = nullptr}, 128)
          .value();
};

TEST_F(BFloat16Networks, OfDocuments) {
  const std::vector<int32_t> longer(30, 5), shorter = {1, 2, 3};
  const std::vector<absl::Span<const int32_t>> documents = {longer, shorter};
  std::vector<TextClassifierConfig> configs = {SmallEncoderConfig()};
  for (const ClsKind cls : {ClsKind::kNone, ClsKind::kAllLayers, ClsKind::kLastLayer, ClsKind::kVocabulary}) {
    configs.push_back(SmallTextConfig());
    configs.back().cls = cls;
    configs.back().value_convolution = cls == ClsKind::kNone ? 3 : 0;
  }
  for (const TextClassifierConfig& config : configs) {
    const auto tensors = RandomTextTensors(config, /*seed=*/1);
    const TextNetwork network = MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
    SCOPED_TRACE(static_cast<int>(config.cls));
    const TextNetwork in_bfloat16 = InBFloat16(network), on_cpu = Packed(network);
    const auto packed = std::make_shared<PackedDocuments>(network.Pack(documents));
    for (const ClassifierOutput output :
         {ClassifierOutput::kLogits, ClassifierOutput::kFeatures, ClassifierOutput::kMeanOfTokens}) {
      SCOPED_TRACE(static_cast<int>(output));
      const auto layers = [&](const DocumentTokens& on_device) {
        return in_bfloat16.Run(output, on_device, *attention_);
      };
      const at::Tensor expected = network.Run(output, packed);
      ExpectRounded(at::tensor(attention_->RunDocuments(network.PackForGpu(documents), layers, /*prepared=*/false))
                        .view(expected.sizes()),
                    expected);
      ExpectRounded(on_cpu.Run(output, packed), expected);
      EXPECT_EQ(on_cpu.MultiplyAdds(output, *packed), network.MultiplyAdds(output, *packed));
    }
  }
}

TEST_F(BFloat16Networks, OfViL) {
  // Both kinds of attention; relative positions (a0), and absolute ones.
  for (const std::string positions : {"a0", "a1"}) {
    const std::string stages = absl::StrReplaceAll(
        "l1,h2,d24,n1,s1,g1,p4,f4,A,r3_l2,h2,d32,n1,s0,g1,p2,f4,A_l3,h2,d32,n1,s0,g0,p1,f4,A", {{"A", positions}});
    const VilConfig config = VilOf(stages, /*image_size=*/32);
    const VilNetwork network = NetworkOver(config, RandomVilTensors(config, /*seed=*/1));
    const at::Tensor images = RandomImages(config, /*batch=*/2, /*seed=*/2);
    SCOPED_TRACE(positions);
    const VilNetwork in_bfloat16 = InBFloat16(network);
    ExpectRounded(in_bfloat16.head(in_bfloat16.Features(images, *attention_)).to(at::kFloat), Logits(network, images));
    ExpectRounded(Logits(Packed(network), images), Logits(network, images));
  }
}

TEST_F(BFloat16Networks, OfCvt) {
  const CvtConfig config = SmallCvt();
  CvtNetwork network = NetworkOver(config, RandomCvtTensors(config, /*seed=*/1));
  network.PrepareForServing();
  const at::Tensor images = RandomImages(/*batch=*/2, /*height=*/23, /*width=*/15, /*seed=*/2);
  const CvtNetwork in_bfloat16 = InBFloat16(network);
  const at::Tensor features = in_bfloat16.Features(images, /*statistics=*/nullptr, *attention_);
  ExpectRounded(in_bfloat16.head(features).to(at::kFloat), network.Logits(images, /*statistics=*/nullptr));
  ExpectRounded(Packed(network).Logits(images, /*statistics=*/nullptr), network.Logits(images, /*statistics=*/nullptr));
}

}  // namespace longshort::models::bfloat16_networks_test
