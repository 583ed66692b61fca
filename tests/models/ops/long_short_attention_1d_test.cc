#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/ops/document_attention/document_attention.h"

namespace longshort::models::long_short_attention_1d_test {

// Random documents with some masked tokens, but no document with masked tokens only.
std::vector<std::vector<int32_t>> RandomDocuments(std::mt19937_64& random, int64_t count) {
  std::vector<std::vector<int32_t>> documents(count);
  for (auto& document : documents) {
    document.resize(1 + random() % 40);
    for (int32_t& id : document) id = random() % 4 == 0 ? 0 : 1;
    document[random() % document.size()] = 1;
  }
  return documents;
}

PackedDocuments Pack(const std::vector<std::vector<int32_t>>& documents, const WindowRule& rule) {
  return PackDocuments(std::vector<absl::Span<const int32_t>>(documents.begin(), documents.end()), rule);
}

// The result of the query of row `row` by definition, over the positions of the whole document: [heads, head_dim].
at::Tensor AttendByDefinition(const std::vector<int32_t>& ids, const std::vector<int64_t>& row_of, int64_t position,
                              const WindowRule& rule, const std::vector<at::Tensor>& tensors) {
  const at::Tensor &queries = tensors[0], &keys = tensors[1], &values = tensors[2], &shared_keys = tensors[3],
                   &shared_values = tensors[4];
  const at::Tensor query = queries[row_of[position]];
  std::vector<at::Tensor> scores, seen;
  for (int64_t j = 0; j < shared_keys.size(0); ++j) {
    scores.push_back((query * shared_keys[j]).sum(1));
    seen.push_back(shared_values[j]);
  }
  const int64_t w = rule.size, margin = std::max<int64_t>(w / 2, 1);
  for (int64_t other = 0; other < static_cast<int64_t>(ids.size()); ++other) {
    const int64_t begin = w == 0 ? 0 : position / w * w;
    const bool visible =
        w == 0 ? (!rule.see_nothing && other == position) : (other >= begin - margin && other < begin + w + margin);
    if (!visible || ids[other] == 0) continue;
    scores.push_back((query * keys[row_of[other]]).sum(1));
    seen.push_back(values[row_of[other]]);
  }
  const at::Tensor weights = at::stack(scores).softmax(0);  // [seen, heads]
  return (weights.unsqueeze(2) * at::stack(seen)).sum(0);
}

TEST(LongShortAttention1d, IsASoftmaxOverTheWindowAndTheSharedVectors) {
  std::mt19937_64 random(3);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  for (const int64_t window : {0, 1, 2, 3, 5, 8, 64}) {
    for (const int64_t shared : {0, 1, 4}) {
      const WindowRule rule{.size = window, .see_nothing = shared == 4};
      const std::vector<int32_t> ids = RandomDocuments(random, 1)[0];
      const PackedDocuments packed = Pack({ids}, rule);
      const auto rows = [&](int64_t count) { return at::randn({count, 2, 5}, generator, at::kDouble); };
      const std::vector<at::Tensor> tensors = {rows(packed.rows()), rows(packed.rows()), rows(packed.rows()),
                                               rows(shared), rows(shared)};
      const at::Tensor attended =
          LongShortAttention1d(packed.documents[0], tensors[0], tensors[1], tensors[2], tensors[3], tensors[4]);
      std::vector<int64_t> row_of(ids.size(), -1);
      for (int64_t row = 0; row < packed.rows(); ++row) row_of[packed.positions[row]] = row;
      for (int64_t row = 0; row < packed.rows(); ++row) {
        const at::Tensor expected = AttendByDefinition(ids, row_of, packed.positions[row], rule, tensors);
        EXPECT_LT((attended[row] - expected).abs().max().item<double>(), 1e-12)
            << "w " << window << ", m " << shared << ", row " << row << " of " << packed.rows();
      }
    }
  }
}

TEST(ConvolveValues, IsACrossCorrelationOverPositions) {
  std::mt19937_64 random(5);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const std::vector<std::vector<int32_t>> documents = RandomDocuments(random, 3);
  const PackedDocuments packed = Pack(documents, {.size = 4});
  for (const int64_t kernel : {1, 3, 7, 101}) {
    const at::Tensor values = at::randn({packed.rows(), 2, 3}, generator, at::kDouble);
    const at::Tensor taps = at::randn({2, kernel}, generator, at::kDouble);
    const at::Tensor convolved = ConvolveValues(packed, values, taps);
    int64_t pairs = 0;
    for (const PackedDocument& document : packed.documents) {
      for (int64_t i = document.first_row; i < document.first_row + document.rows; ++i) {
        at::Tensor expected = at::zeros({2, 3}, at::kDouble);
        for (int64_t j = document.first_row; j < document.first_row + document.rows; ++j) {
          const int64_t tap = packed.positions[j] - packed.positions[i] + kernel / 2;
          if (tap < 0 || tap >= kernel) continue;
          expected += taps.select(1, tap).unsqueeze(1) * values[j];
          ++pairs;
        }
        EXPECT_LT((convolved[i] - expected).abs().max().item<double>(), 1e-12) << "kernel " << kernel;
      }
    }
    EXPECT_EQ(ConvolvedPairs(packed, kernel), pairs);
  }
}

}  // namespace longshort::models::long_short_attention_1d_test
