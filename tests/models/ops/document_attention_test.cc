#include "models/ops/document_attention/document_attention.h"

#include <memory>
#include <random>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"

namespace longshort::models::document_attention_test {

// Documents of 1 to 60 tokens, a quarter of the tokens masked, with random queries, keys, values, shared keys and
// shared values.
struct Batch {
  std::shared_ptr<const PackedDocuments> packed;
  std::vector<at::Tensor> tensors;
};

Batch RandomBatch(uint64_t seed, int64_t window, int64_t shared, int64_t heads) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int32_t>> documents(4);
  for (auto& document : documents) {
    document.resize(1 + random() % 60);
    for (int32_t& id : document) id = random() % 4 == 0 ? 0 : 1;
    document.front() = 1;
  }
  const std::vector<absl::Span<const int32_t>> spans(documents.begin(), documents.end());
  const WindowRule rule{.size = window, .see_nothing = shared > 1};
  Batch batch{.packed = std::make_shared<const PackedDocuments>(PackDocuments(spans, rule)), .tensors = {}};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const int64_t rows = batch.packed->rows(), width = heads * 6;
  for (int i = 0; i < 3; ++i) batch.tensors.push_back(at::randn({rows, width}, generator, at::kFloat));
  for (int i = 0; i < 2; ++i) batch.tensors.push_back(at::randn({4, shared, width}, generator, at::kFloat));
  for (at::Tensor& tensor : batch.tensors) tensor.requires_grad_(true);
  return batch;
}

at::Tensor Attend(const Batch& batch, int64_t heads) {
  const auto& t = batch.tensors;
  return AttendDocuments(batch.packed, heads, t[0], t[1], t[2], t[3], t[4]);
}

at::Tensor AttendByReference(const Batch& batch, int64_t heads, const std::vector<at::Tensor>& tensors) {
  const auto& t = tensors;
  return AttendDocumentsByReference(*batch.packed, heads, t[0], t[1], t[2], t[3], t[4]);
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b).abs().max().item<double>();
}

TEST(DocumentAttention, IsTheReferenceForwardAndBackward) {
  uint64_t seed = 0;
  for (const int64_t window : {0, 1, 4, 5, 16}) {
    for (const int64_t shared : {0, 1, 9}) {
      const int64_t heads = 1 + static_cast<int64_t>(++seed % 3);
      const Batch batch = RandomBatch(seed, window, shared, heads);
      std::vector<at::Tensor> exact;
      for (const at::Tensor& tensor : batch.tensors)
        exact.push_back(tensor.detach().to(at::kDouble).requires_grad_(true));
      const at::Tensor attended = Attend(batch, heads);
      // In double precision.
      const at::Tensor expected = AttendByReference(batch, heads, exact);
      EXPECT_LT(LargestDifference(attended, expected), 1e-5) << "w " << window << ", m " << shared;

      const at::Tensor direction = at::randn_like(expected);
      (expected * direction).sum().backward();
      (attended * direction.to(at::kFloat)).sum().backward();
      for (size_t i = 0; i < exact.size(); ++i) {
        EXPECT_LT(LargestDifference(batch.tensors[i].grad(), exact[i].grad()), 5e-5)
            << "w " << window << ", m " << shared << ", gradient " << i;
      }
    }
  }
}

TEST(DocumentAttention, RunsWhereNoGradientIsKept) {
  const Batch batch = RandomBatch(1, 4, 3, 2);
  const at::Tensor expected = Attend(batch, 2).detach();
  const c10::InferenceMode inference;
  EXPECT_TRUE(at::equal(Attend(batch, 2), expected));
}

// The kernel reads CPU memory. Tensors on the device "meta" have shapes only.
TEST(DocumentAttention, RunsOnTheDeviceOfItsTensors) {
  Batch batch = RandomBatch(1, 4, 3, 2);
  for (at::Tensor& tensor : batch.tensors) tensor = tensor.detach().to(at::kMeta);
  const at::Tensor attended = Attend(batch, 2);
  EXPECT_TRUE(attended.is_meta());
  EXPECT_EQ(attended.sizes(), batch.tensors[0].sizes());
}

TEST(DocumentAttention, CountsThePairsThatSeeEachOther) {
  // w = 2 with one more on either side: queries 0 and 1 see 3 keys, query 2 sees 2; each sees 4 shared vectors.
  const std::vector<int32_t> ids = {1, 1, 1};
  const std::vector<absl::Span<const int32_t>> documents = {ids};
  const DocumentCounts counts = CountsOf(PackDocuments(documents, {.size = 2}), /*taps=*/0);
  EXPECT_EQ(AttentionMultiplyAdds(counts, 4, 6), 2 * (3 + 3 + 2 + 3 * 4) * 6);
}

}  // namespace longshort::models::document_attention_test
