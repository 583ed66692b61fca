// Training's kernels give the same on every instruction set. tests/models/ops/layer_halves_test.cc compares the
// fastest set's results with the reference.

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/layer_halves/layer_halves_kernels.h"
#include "models/ops/segment_attention/segment_attention_kernels.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::cpu::training_kernels_test {

// More than a block.
constexpr int64_t kRows = 100;

// The memory of a kernel's call. What the kernel has to write is NaN before.
class Arrays {
 public:
  const float* Input(int64_t count) { return Fill(inputs_, count); }
  HeadRows<const float> InputRows(int64_t rows, int64_t width) { return {Input(rows * (width + 16)), width + 16}; }
  float* Output(int64_t count) { return results_.emplace_back(count, NAN).data(); }
  HeadRows<float> OutputRows(int64_t rows, int64_t width) { return {Output(rows * width), width}; }
  // A result that the kernel adds to.
  float* Sum(int64_t count) { return Fill(results_, count); }
  float* Scratch(int64_t count) { return inputs_.emplace_back(count, NAN).data(); }

  std::vector<float> Results() const {
    std::vector<float> all;
    for (const std::vector<float>& result : results_) all.insert(all.end(), result.begin(), result.end());
    return all;
  }

  RowNorm Norm(int64_t width) { return {.gain = Input(width), .bias = Input(width), .epsilon = 1e-5F}; }
  NormGradient ToNorm(int64_t width) { return {.gain = Sum(width), .bias = Sum(width)}; }
  TrainedMap Map(int64_t outputs, int64_t inputs) {
    TrainedMap map{.outputs = outputs, .inputs = inputs, .weight = Input(outputs * inputs), .bias = Input(outputs)};
    std::vector<float>& transposed = inputs_.emplace_back(outputs * inputs);
    for (int64_t i = 0; i < outputs * inputs; ++i) transposed[i % inputs * outputs + i / inputs] = map.weight[i];
    map.transposed = transposed.data();
    return map;
  }
  MapGradient ToMap(const TrainedMap& map) {
    return {.weight = Sum(map.outputs * map.inputs), .bias = Sum(map.outputs)};
  }

 private:
  float* Fill(std::deque<std::vector<float>>& arrays, int64_t count) {
    std::normal_distribution<float> normal(0, 0.5F);
    std::vector<float>& array = arrays.emplace_back(count);
    for (float& x : array) x = normal(random_);
    return array.data();
  }

  std::mt19937_64 random_;
  std::deque<std::vector<float>> inputs_, results_;
};

std::vector<float> ResultsOfBeforeAttention(InstructionSet set) {
  constexpr int64_t kWidth = 32, kLogits = 6;
  Arrays arrays;
  const BeforeAttention half{.width = kWidth,
                             .logits = kLogits,
                             .norm = arrays.Norm(kWidth),
                             .map = arrays.Map(3 * kWidth + PaddedHeadWidth(kLogits), kWidth),
                             .window_norm = arrays.Norm(kWidth)};
  const BeforeAttentionRows rows{.rows = kRows,
                                 .input = arrays.Input(kRows * kWidth),
                                 .queries = arrays.Output(kRows * kWidth),
                                 .keys = arrays.Output(kRows * kWidth),
                                 .values = arrays.Output(kRows * kWidth),
                                 .logits = arrays.Output(kRows * kLogits),
                                 .raw = arrays.Output(kRows * 2 * kWidth),
                                 .normed = arrays.Output(kRows * kWidth)};
  const BeforeAttentionGradient gradient{.queries = arrays.Input(kRows * kWidth),
                                         .keys = arrays.Input(kRows * kWidth),
                                         .values = arrays.Input(kRows * kWidth),
                                         .logits = arrays.Input(kRows * kLogits),
                                         .raw = arrays.Input(kRows * 2 * kWidth),
                                         .normed = arrays.Input(kRows * kWidth),
                                         .input = arrays.Output(kRows * kWidth),
                                         .norm = arrays.ToNorm(kWidth),
                                         .window_norm = arrays.ToNorm(kWidth),
                                         .map = arrays.ToMap(half.map)};
  RunBeforeAttention(half, rows, arrays.Scratch(BeforeAttentionScratchFloats(half)), set);
  DifferentiateBeforeAttention(half, rows, gradient, arrays.Scratch(BeforeAttentionScratchFloats(half)), set);
  return arrays.Results();
}

std::vector<float> ResultsOfAfterAttention(InstructionSet set) {
  constexpr int64_t kWidth = 32, kInner = 48;
  Arrays arrays;
  const AfterAttention half{.output = arrays.Map(kWidth, kWidth),
                            .in = arrays.Map(kInner, kWidth),
                            .out = arrays.Map(kWidth, kInner),
                            .norm = arrays.Norm(kWidth)};
  const AfterAttentionRows rows{.rows = kRows,
                                .input = arrays.Input(kRows * kWidth),
                                .attended = arrays.Input(kRows * kWidth),
                                .sum = arrays.Output(kRows * kWidth),
                                .inner = arrays.Output(kRows * kInner),
                                .result = arrays.Output(kRows * kWidth)};
  const AfterAttentionGradient gradient{.result = arrays.Input(kRows * kWidth),
                                        .input = arrays.Output(kRows * kWidth),
                                        .attended = arrays.Output(kRows * kWidth),
                                        .norm = arrays.ToNorm(kWidth),
                                        .output = arrays.ToMap(half.output),
                                        .in = arrays.ToMap(half.in),
                                        .out = arrays.ToMap(half.out)};
  RunAfterAttention(half, rows, arrays.Scratch(AfterAttentionScratchFloats(half)), set);
  DifferentiateAfterAttention(half, rows, gradient, arrays.Scratch(AfterAttentionScratchFloats(half)), set);
  return arrays.Results();
}

std::vector<float> ResultsOfLandmarks(InstructionSet set) {
  constexpr int64_t kWidth = 16, kRank = 5;
  Arrays arrays;
  const LandmarkHead head{.head_width = kWidth,
                          .rows = kRows,
                          .rank = kRank,
                          .logits = arrays.InputRows(kRows, kRank),
                          .keys = arrays.InputRows(kRows, kWidth),
                          .values = arrays.InputRows(kRows, kWidth)};
  const LandmarkOutput output{.weights = arrays.Output(kRows * PaddedHeadWidth(kRank)),
                              .keys = arrays.OutputRows(kRank, kWidth),
                              .values = arrays.OutputRows(kRank, kWidth)};
  const LandmarkGradient gradient{.weights = output.weights,
                                  .landmark_keys = {output.keys.data, kWidth},
                                  .landmark_values = {output.values.data, kWidth},
                                  .to_landmark_keys = arrays.InputRows(kRank, kWidth),
                                  .to_landmark_values = arrays.InputRows(kRank, kWidth),
                                  .logits = arrays.OutputRows(kRows, kRank),
                                  .keys = arrays.OutputRows(kRows, kWidth),
                                  .values = arrays.OutputRows(kRows, kWidth)};
  MixLandmarks(head, output, set);
  DifferentiateLandmarks(head, gradient, arrays.Scratch(LandmarkGradientScratchFloats(head)), set);
  return arrays.Results();
}

std::vector<float> ResultsOfClsAttention(InstructionSet set) {
  constexpr int64_t kWidth = 16;
  Arrays arrays;
  const ClsHead head{.head_width = kWidth,
                     .rows = kRows,
                     .query = arrays.Input(kWidth),
                     .own_key = arrays.Input(kWidth),
                     .own_value = arrays.Input(kWidth),
                     .keys = arrays.InputRows(kRows, kWidth),
                     .values = arrays.InputRows(kRows, kWidth)};
  float* const weights = arrays.Output(ClsWeights(kRows));
  const ClsGradient gradient{.weights = weights,
                             .attended = arrays.Input(kWidth),
                             .query = arrays.Output(kWidth),
                             .own_key = arrays.Output(kWidth),
                             .own_value = arrays.Output(kWidth),
                             .keys = arrays.OutputRows(kRows, kWidth),
                             .values = arrays.OutputRows(kRows, kWidth)};
  AttendFromCls(head, weights, arrays.Output(kWidth), set);
  DifferentiateCls(head, gradient, arrays.Scratch(ClsWeights(kRows)), set);
  return arrays.Results();
}

std::vector<float> ResultsOfSegmentAttention(InstructionSet set) {
  constexpr int64_t kWidth = 20, kWindow = 19, kSegments = 3;
  Arrays arrays;
  const SegmentShape shape{
      .tokens = 60 * kSegments, .segment_length = 60, .chunk_size = 6, .rank = 2, .window = kWindow, .past = 10};
  const int64_t rows = kWindow - 1 + shape.tokens, vectors = shape.vectors(), all = shape.past + vectors;
  const auto added_to = [&](int64_t count) { return HeadRows<float>{arrays.Sum(count * kWidth), kWidth}; };
  const SegmentHead head{.head_width = kWidth,
                         .shape = shape,
                         .queries = arrays.InputRows(shape.tokens, kWidth),
                         .window_keys = arrays.InputRows(rows, kWidth),
                         .window_values = arrays.InputRows(rows, kWidth),
                         .memory_keys = arrays.InputRows(all, kWidth),
                         .memory_values = arrays.InputRows(all, kWidth),
                         .segment_keys = arrays.InputRows(vectors, kWidth),
                         .segment_values = arrays.InputRows(vectors, kWidth),
                         .window_positions = arrays.InputRows(kWindow, kWidth),
                         .chunk_positions = arrays.InputRows(shape.distances(), kWidth),
                         .window_bias = arrays.Input(kWidth),
                         .relative_bias = arrays.Input(kWidth)};
  const SegmentOutput output{.attended = arrays.OutputRows(shape.tokens, kWidth),
                             .log_sums = arrays.Output(shape.tokens)};
  AttendSegments(head, output, arrays.Scratch(AttendSegmentsScratchFloats(head)), set);
  const SegmentGradient gradient{.attended = arrays.InputRows(shape.tokens, kWidth),
                                 .log_sums = output.log_sums,
                                 .queries = arrays.OutputRows(shape.tokens, kWidth),
                                 .window_keys = arrays.OutputRows(rows, kWidth),
                                 .window_values = arrays.OutputRows(rows, kWidth),
                                 .memory_keys = arrays.OutputRows(all, kWidth),
                                 .memory_values = arrays.OutputRows(all, kWidth),
                                 .segment_keys = arrays.OutputRows(vectors, kWidth),
                                 .segment_values = arrays.OutputRows(vectors, kWidth),
                                 .window_positions = added_to(kWindow),
                                 .chunk_positions = added_to(shape.distances()),
                                 .window_bias = arrays.Sum(kWidth),
                                 .relative_bias = arrays.Sum(kWidth)};
  DifferentiateSegments(head, gradient, arrays.Scratch(SegmentGradientScratchFloats(head)), set);
  return arrays.Results();
}

TEST(TrainingKernels, GiveTheSameOnEveryInstructionSet) {
  const struct {
    const char* name;
    std::vector<float> (*results)(InstructionSet);
  } kernels[] = {{"before attention", ResultsOfBeforeAttention},
                 {"after attention", ResultsOfAfterAttention},
                 {"landmarks", ResultsOfLandmarks},
                 {"CLS attention", ResultsOfClsAttention},
                 {"segment attention", ResultsOfSegmentAttention}};
  for (const auto& [name, results] : kernels) {
    const std::vector<float> expected = results(BestInstructionSet());
    for (const InstructionSet set : InstructionSetsHere()) {
      const std::vector<float> found = results(set);
      double error = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        const double difference = std::abs(found[i] - expected[i]) / (1 + std::abs(expected[i]));
        error = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(error, difference);
      }
      EXPECT_LT(error, 1e-5) << name << ", " << InstructionSetName(set);
    }
  }
}

}  // namespace longshort::models::cpu::training_kernels_test
