#include "models/ops/layers/dropout.h"

#include <cstdint>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/ops/document_attention/document_attention.h"

namespace longshort::models::dropout_test {

constexpr uint64_t kSeed = 5;

TEST(Dropout, KeepsTheExpectedValue) {
  Dropout dropout({.rows = 0.2}, kSeed);
  const at::Tensor dropped = dropout.OfRows(at::full({1000, 1000}, 4.0));
  const at::Tensor is_zero = dropped == 0;
  // A million draws have a standard error of 0.0004.
  EXPECT_NEAR(is_zero.to(at::kFloat).mean().item<double>(), 0.2, 0.002);
  EXPECT_TRUE(at::equal(dropped.masked_fill(is_zero, 5.0), at::full({1000, 1000}, 5.0))) << "4 / 0.8";
}

TEST(Dropout, ARateOfZeroChangesAndDrawsNothing) {
  const at::Tensor rows = at::randn({8, 8});
  Dropout none({.rows = 0, .attention = 0.5}, kSeed), same({.attention = 0.5}, kSeed);
  EXPECT_TRUE(none.OfRows(rows).is_same(rows));
  EXPECT_TRUE(none.OfTable(rows).is_same(rows));
  EXPECT_TRUE(at::equal(none.OfAttention(rows), same.OfAttention(rows)));
  EXPECT_TRUE(Dropout({.rows = 0.5}, kSeed).OfAttention(rows).is_same(rows));
}

TEST(Dropout, TheSeedDecidesAndTheThreadsDoNot) {
  const int threads = at::get_num_threads();
  const auto mask = [](uint64_t seed, int number) {
    at::set_num_threads(number);
    return Dropout({.rows = 0.3}, seed).OfRows(at::ones({512, 300}));
  };
  const at::Tensor one = mask(kSeed, 1), four = mask(kSeed, 4), other = mask(kSeed + 1, 1);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(one, four));
  EXPECT_FALSE(at::equal(one, other));
}

TEST(Dropout, AnItemsMaskDoesNotDependOnTheOtherItems) {
  const at::Tensor rows = at::ones({3, 50, 20});
  const auto dropped = [&](const std::vector<uint64_t>& seeds, int64_t first) {
    Dropout dropout({.rows = 0.5}, kSeed, seeds);
    const at::Tensor of_items = rows.narrow(0, first, static_cast<int64_t>(seeds.size()));
    dropout.OfTable(rows);
    dropout.OfRows(of_items);
    return dropout.OfRows(of_items);
  };
  const at::Tensor all = dropped({7, 8, 9}, 0);
  EXPECT_TRUE(at::equal(all.narrow(0, 1, 2), dropped({8, 9}, 1)));
  EXPECT_FALSE(at::equal(all[0], all[1]));
}

// The mean over many masks is attention without dropout: the values are linear in the probabilities.
TEST(Dropout, OfAttentionKeepsTheExpectedResult) {
  const std::vector<int32_t> ids(6, 1);
  const std::vector<absl::Span<const int32_t>> documents = {ids};
  const PackedDocuments packed = PackDocuments(documents, {.size = 2});
  const auto rows = [](int64_t count) { return at::randn({count, 1, 4}); };
  const at::Tensor queries = rows(6), keys = rows(6), values = rows(6), shared_keys = rows(2), shared_values = rows(2);
  const auto attend = [&](Dropout* dropout) {
    return LongShortAttention1d(packed.documents[0], queries, keys, values, shared_keys, shared_values, dropout);
  };
  constexpr int kMasks = 500;
  at::Tensor sum = at::zeros({6, 1, 4}), squares = at::zeros({6, 1, 4});
  for (int i = 0; i < kMasks; ++i) {
    Dropout dropout({.attention = 0.25}, static_cast<uint64_t>(i));
    const at::Tensor attended = attend(&dropout);
    sum += attended;
    squares += attended.square();
  }
  const at::Tensor mean = sum / kMasks, error = ((squares / kMasks - mean.square()) / kMasks).sqrt();
  EXPECT_LT(((mean - attend(nullptr)).abs() / error).max().item<double>(), 4.5) << "standard errors, of 24 values";
}

// A rate so small that nothing is dropped. Attention with dropout computes several windows at once.
TEST(Dropout, OfAttentionSeesTheSameKeysAsAttentionWithoutIt) {
  for (const int64_t window : {0, 1, 4, 7}) {
    std::vector<int32_t> first(150, 1), second(3, 1);
    for (size_t i = 1; i < first.size(); i += 3) first[i] = 0;  // masked
    const std::vector<absl::Span<const int32_t>> documents = {first, second};
    const PackedDocuments packed = PackDocuments(documents, {.size = window, .see_nothing = window == 0});
    const auto rows = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
    const at::Tensor queries = rows({packed.rows(), 8}), keys = rows({packed.rows(), 8}),
                     values = rows({packed.rows(), 8}), shared_keys = rows({2, 3, 8}), shared_values = rows({2, 3, 8});
    const auto attend = [&](Dropout* dropout) {
      return AttendDocumentsByReference(packed, 2, queries, keys, values, shared_keys, shared_values, dropout);
    };
    Dropout none({.attention = 1e-15}, kSeed);
    EXPECT_LT((attend(&none) - attend(nullptr)).abs().max().item<double>(), 1e-12) << "window " << window;
  }
}

}  // namespace longshort::models::dropout_test
