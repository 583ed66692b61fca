#include "models/ops/segment_attention/segment_attention.h"

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace longshort::models::segment_attention_test {

struct Case {
  SegmentGrid grid;
  int64_t batch = 0, segments = 0, window = 0, head_width = 0;

  std::string Name() const {
    return absl::StrCat("L ", grid.segment_length, ", C ", grid.chunk_size, ", R ", grid.rank, ", memory ",
                        grid.past_vectors, ", W ", window, ", ", grid.heads, " heads of ", head_width, ", ", segments,
                        " segments of ", batch, " streams");
  }
};

Case RandomCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const std::vector<int64_t>& values) { return values[random() % values.size()]; };
  const int64_t chunk = one_of({1, 4, 5, 16, 24}), rank = one_of({1, 2, 3});
  return {.grid = {.heads = one_of({1, 2, 3}),
                   .segment_length = chunk * one_of({1, 2, 5}),
                   .chunk_size = chunk,
                   .rank = rank,
                   .past_vectors = rank * one_of({0, 1, 7, 20})},
          .batch = one_of({1, 2}),
          .segments = one_of({1, 2, 3}),
          .window = one_of({1, 2, 15, 16, 33, 130}),
          .head_width = one_of({1, 7, 16, 20, 32, 64})};
}

// All arguments, and a gradient of the result.
std::vector<at::Tensor> RandomTensors(const Case& of, uint64_t seed) {
  at::manual_seed(seed);
  const SegmentGrid& grid = of.grid;
  const int64_t tokens = of.segments * grid.segment_length, width = grid.heads * of.head_width;
  const int64_t vectors = tokens / grid.chunk_size * grid.rank;
  const int64_t distances = grid.past_vectors + (grid.segment_length / grid.chunk_size - 1) * grid.rank;
  const auto rows = [&](int64_t count) { return at::randn({of.batch, count, width}, at::kDouble); };
  const auto of_heads = [&](int64_t count) { return at::randn({count, grid.heads, of.head_width}, at::kDouble); };
  const int64_t window_rows = of.window - 1 + tokens, past = grid.past_vectors + vectors;
  return {rows(tokens) / std::sqrt(static_cast<double>(of.head_width)),
          rows(window_rows),
          rows(window_rows),
          rows(past),
          rows(past),
          rows(vectors),
          rows(vectors),
          of_heads(of.window),
          of_heads(distances),
          of_heads(1)[0],
          of_heads(1)[0],
          rows(tokens)};
}

struct Results {
  at::Tensor attended;
  std::vector<at::Tensor> gradients;  // of all arguments
};

template <typename Attend>
Results ResultsOf(const Case& of, const Attend& attend, const std::vector<at::Tensor>& tensors, at::ScalarType type) {
  std::vector<at::Tensor> arguments;
  for (const at::Tensor& tensor : tensors) arguments.push_back(tensor.to(type).clone().requires_grad_());
  const auto& t = arguments;
  const at::Tensor attended = attend(of.grid, SegmentTensors{t[0], t[1], t[2], t[3], t[4], t[5], t[6]},
                                     RelativePositions{t[7], t[8], t[9], t[10]});
  attended.backward(t[11].detach());
  Results results{attended.detach().to(at::kDouble), {}};
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    const at::Tensor& gradient = arguments[i].grad();
    results.gradients.push_back(gradient.defined() ? gradient.to(at::kDouble) : at::zeros_like(tensors[i]));
  }
  return results;
}

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : ((a - b).abs().max() / b.abs().max().clamp_min(1)).item<double>();
}

TEST(SegmentAttention, HasTheGradientsOfTheReferenceInDouble) {
  constexpr std::array<const char*, 11> kNames = {
      "queries",        "window keys",      "window values",   "memory keys", "memory values", "segment keys",
      "segment values", "window positions", "chunk positions", "window bias", "relative bias"};
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Case one = RandomCase(seed);
    SCOPED_TRACE(one.Name());
    const std::vector<at::Tensor> tensors = RandomTensors(one, seed);
    const Results found = ResultsOf(one, AttendSegments, tensors, at::kFloat);
    const Results expected = ResultsOf(one, AttendSegmentsByReference, tensors, at::kDouble);
    EXPECT_LT(LargestDifference(found.attended, expected.attended), 1e-5);
    for (size_t i = 0; i < kNames.size(); ++i) {
      EXPECT_LT(LargestDifference(found.gradients[i], expected.gradients[i]), 1e-5) << kNames[i];
    }
  }
}

}  // namespace longshort::models::segment_attention_test
