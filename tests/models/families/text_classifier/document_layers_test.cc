#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "models/device/library.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/families/text_classifier/text_network.h"
#include "models/ops/item_attention/item_attention.h"
#include "tests/models/families/text_classifier/random_text_model.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::document_layers_test {

// Documents at and around the kernels' 64 rows, of several blocks in a piece, and with masked tokens.
constexpr int64_t kLengths[] = {1, 2, 17, 63, 64, 65, 131, 700};

class Problem {
 public:
  Problem(const TextClassifierConfig& config, uint64_t seed) {
    const std::map<std::string, at::Tensor> tensors = RandomTextTensors(config, seed);
    network_ = MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
    std::mt19937_64 random(seed);
    std::vector<std::vector<int32_t>> documents;
    for (const int64_t length : kLengths) {
      for (int32_t& id : documents.emplace_back(length)) id = static_cast<int32_t>(random() % config.vocabulary_size);
      documents.back().front() = documents.back().back() = 2;
    }
    packed_ = std::make_shared<const PackedDocuments>(
        network_.Pack(std::vector<absl::Span<const int32_t>>(documents.begin(), documents.end())));
    tokens_ = at::randn({packed_->rows(), config.model_width});
    cls_ = at::randn({std::ssize(kLengths), config.model_width});
    if (config.cls == ClsKind::kNone) cls_ = at::Tensor();
    cls_layer_ = config.cls == ClsKind::kLastLayer ? config.layers - 1 : 0;
  }

  at::Tensor ByKernels(bool cls_only, cpu::InstructionSet set) const {
    return RunFused(network_.layers, *packed_, tokens_, cls_, cls_layer_, cls_only, set).all;
  }
  at::Tensor ByReference(bool cls_only) const {
    CpuItemAttention attention(packed_);
    HiddenRows hidden{tokens_, 0};
    for (int64_t layer = 0; layer < std::ssize(network_.layers); ++layer) {
      if (cls_.defined() && layer == cls_layer_) hidden = {at::cat({cls_, tokens_of(hidden)}), cls_.size(0)};
      const bool last = layer + 1 == std::ssize(network_.layers);
      hidden = network_.layers[layer](hidden, std::ssize(kLengths), attention, cls_only && last);
    }
    return hidden.all;
  }
  bool CanBeFused() const { return CanFuse(network_.layers, *packed_); }
  bool HasCls() const { return cls_.defined(); }

 private:
  static at::Tensor tokens_of(const HiddenRows& hidden) { return hidden.tokens(); }

  TextNetwork network_;
  std::shared_ptr<const PackedDocuments> packed_;
  at::Tensor tokens_, cls_;
  int64_t cls_layer_ = 0;
};

TextClassifierConfig Configuration(int64_t number) {
  constexpr int64_t kWindows[] = {0, 1, 4, 5, 8, 16, 64, 100, 256}, kRanks[] = {0, 1, 3, 16, 20, 32};
  constexpr ClsKind kKinds[] = {ClsKind::kNone, ClsKind::kVocabulary, ClsKind::kAllLayers, ClsKind::kLastLayer,
                                ClsKind::kFirstToken};
  TextClassifierConfig config;
  config.heads = 1 + number % 3 * 3;
  // Not 4 for one head: some rows of 4 numbers have so little variance that the norm magnifies rounding a hundredfold.
  config.model_width = config.heads * (number % 2 == 0 ? 9 : config.heads == 1 ? 12 : 4);
  config.feed_forward_width = 20 * (1 + number);
  config.window_size = kWindows[number % std::ssize(kWindows)];
  config.projection_rank = kRanks[number % std::ssize(kRanks)];
  config.cls = kKinds[number % std::ssize(kKinds)];
  config.normalized_cls = number % 4 == 3;
  config.padding_id = number % 2;
  config.vocabulary_size = 5;
  config.max_sequence_length = 1000;
  if (number % 7 > 3) config.layer_norm = LayerNormPlace::kAfter;
  config.dual_norm = config.projection_rank > 0 || number % 4 != 0;
  return config;
}

TEST(DocumentLayers, AreTheReferenceForAnyShapeOnEveryInstructionSet) {
  const c10::InferenceMode inference;
  const OneThread one_thread;
  for (int64_t number = 0; number < 45; ++number) {
    const Problem problem(Configuration(number), number);
    for (const bool cls_only : {false, true}) {
      if (cls_only && !problem.HasCls()) continue;
      const at::Tensor expected = problem.ByReference(cls_only);
      for (const cpu::InstructionSet set : cpu::InstructionSetsHere()) {
        const at::Tensor found = problem.ByKernels(cls_only, set);
        ASSERT_EQ(found.sizes(), expected.sizes());
        const double difference = (found - expected).abs().max().item<double>();
        EXPECT_LT(difference, 2e-5 * std::max(1.0, expected.abs().max().item<double>()))
            << "case " << number << ", cls_only " << cls_only << ", " << cpu::InstructionSetName(set);
        EXPECT_FALSE(std::isnan(difference));
      }
    }
  }
}

TEST(DocumentLayers, HaveTheSameBitsOnAnyNumberOfThreads) {
  const c10::InferenceMode inference;
  const Problem problem(Configuration(8), 1);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = problem.ByKernels(false, cpu::BestInstructionSet());
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(problem.ByKernels(false, cpu::BestInstructionSet()), alone));
  at::set_num_threads(before);
}

TEST(DocumentLayers, AreNotForGradientsConvolutionsAndWideLayers) {
  TextClassifierConfig config = Configuration(8);
  EXPECT_FALSE(Problem(config, 1).CanBeFused());  // gradients are kept
  const c10::InferenceMode inference;
  EXPECT_TRUE(Problem(config, 1).CanBeFused());
  config.value_convolution = 3;
  EXPECT_FALSE(Problem(config, 1).CanBeFused());
  config.value_convolution = 0;
  config.feed_forward_width = 20000;
  EXPECT_FALSE(Problem(config, 1).CanBeFused());
}

}  // namespace longshort::models::document_layers_test
