// The attention kernels on the tested device, against plain sums in double precision.

#include <cmath>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/ops/causal_attention/attention_tile.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "tests/models/gpu/attention_problem.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::gpu_causal_attention_test {

template <typename E, typename R>
struct Types {
  using Element = E;
  using Row = R;
};

template <typename T>
class GpuCausalAttention : public ::testing::Test {
 protected:
  using Problem = AttentionProblem<typename T::Element, typename T::Row>;
  // Probabilities are rounded to elements, 8 bits of bfloat16; so is the output.
  static constexpr double kBound = sizeof(typename T::Element) == 4 ? 1e-5 : 2e-2;

  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using TestedTypes = ::testing::Types<Types<float, float>, Types<BFloat16, float>, Types<BFloat16, BFloat16>>;
TYPED_TEST_SUITE(GpuCausalAttention, TestedTypes);

// Sequences at their start, in the middle of a chunk, at the end of a segment, across it, and long ones.
const std::vector<TestedSlice> kSlices = {{.position = 0, .segment_start = 0, .count = 3},
                                          {.position = 158, .segment_start = 0, .count = 5},
                                          {.position = 1001, .segment_start = 960, .count = 1},
                                          {.position = 483, .segment_start = 480, .count = 20}};

TYPED_TEST(GpuCausalAttention, DecodesAnyMixOfSequences) {
  typename TestFixture::Problem problem(*this->device_, {}, kSlices, 1);
  EXPECT_LT(problem.Error(problem.DecodeAll()), this->kBound);
}

TYPED_TEST(GpuCausalAttention, ReadsPromptsInTiles) {
  typename TestFixture::Problem problem(*this->device_, {}, kSlices, 1);
  EXPECT_LT(problem.Error(problem.PromptAll()), this->kBound);
}

TYPED_TEST(GpuCausalAttention, MeetsPlainSumsForAnyShape) {
  const std::vector<AttentionModel> models = {
      {.heads = 1, .head_width = 1, .window_length = 1, .chunk_size = 1, .memory_length = 1, .segment_length = 1},
      {.heads = 3,
       .head_width = 33,
       .window_length = 64,
       .chunk_size = 16,
       .memory_length = 64,
       .segment_length = 64,
       .has_query_bias = true},
      {.heads = 1,
       .head_width = 64,
       .window_length = 65,
       .chunk_size = 3,
       .chunk_rank = 3,
       .memory_length = 99,
       .segment_length = 90},
      {.heads = 1,
       .head_width = 100,
       .window_length = 20,
       .chunk_size = 5,
       .chunk_rank = 7,
       .memory_length = 50,
       .segment_length = 100}};
  for (const AttentionModel& model : models) {
    const int64_t start = 5 * model.segment_length;
    typename TestFixture::Problem problem(
        *this->device_, model,
        {{.position = start, .segment_start = start, .count = 1},
         {.position = start + model.segment_length / 2, .segment_start = start, .count = 18}},
        model.head_width);
    EXPECT_LT(problem.Error(problem.DecodeAll()), this->kBound) << "width " << model.head_width;
    EXPECT_LT(problem.Error(problem.PromptAll()), this->kBound) << "width " << model.head_width;
  }
}

TYPED_TEST(GpuCausalAttention, ARowsBitsDependOnItsHistoryOnly) {
  typename TestFixture::Problem problem(*this->device_, {}, kSlices, 2);
  const std::vector<float> together = problem.DecodeAll();
  const int64_t columns = static_cast<int64_t>(together.size()) / problem.rows();
  // Alone, in another order, with gaps.
  const std::vector<float> others = problem.Decode({-1, 8, 3, -1, 12, 0});
  for (const int64_t row : {0, 3, 8, 12}) {
    for (int64_t c = 0; c < columns; ++c) EXPECT_EQ(others[row * columns + c], together[row * columns + c]);
  }
  EXPECT_TRUE(std::isnan(others[columns]));  // row 1 was not asked for
  // In tiles of any size, and one of no rows; some rows so, and others so.
  EXPECT_EQ(problem.PromptAll(), together);
  EXPECT_EQ(problem.Prompt({0, 3, 3, 2, 5, 3, 0, 0, 8, 1, 9, 7, 16, 13}), together);
  EXPECT_EQ(problem.Attend(4), together);
}

// A thread block merges the results of 64 blocks of keys at a time: here of 68.
TYPED_TEST(GpuCausalAttention, MergesMoreBlocksOfKeysThanItHoldsAtOnce) {
  const AttentionModel model = {.heads = 1,
                                .head_width = 8,
                                .window_length = 30,
                                .chunk_size = 1,
                                .memory_length = 66 * kPageRows,
                                .segment_length = 40};
  const int64_t start = 9000;
  typename TestFixture::Problem problem(*this->device_, model,
                                        {{.position = start + 7, .segment_start = start, .count = 1}}, 4);
  const std::vector<float> tiles = problem.PromptAll();
  EXPECT_LT(problem.Error(tiles), this->kBound);
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    EXPECT_EQ(problem.DecodeAll(), tiles) << NameOf(options);
  }
}

TYPED_TEST(GpuCausalAttention, ReadsPagesBeyondFourBillionElements) {
  AttentionModel model = {.heads = 1, .head_width = 8};
  typename TestFixture::Problem near(*this->device_, model, kSlices, 2);
  model.first_page = kFarPage;
  typename TestFixture::Problem far(*this->device_, model, kSlices, 2);
  EXPECT_EQ(far.DecodeAll(), near.DecodeAll());
  EXPECT_EQ(far.PromptAll(), near.PromptAll());
}

// Heads of 64 float32 or of 128 bfloat16 channels: there, two stages of keys do not fit.
TYPED_TEST(GpuCausalAttention, HasTheSameBitsOnChipsWithLittleSharedMemory) {
  const AttentionModel model = {.heads = 1,
                                .head_width = sizeof(typename TypeParam::Element) == 4 ? 64 : 128,
                                .window_length = 70,
                                .memory_length = 40,
                                .segment_length = 40};
  typename TestFixture::Problem problem(*this->device_, model, {{.position = 70, .segment_start = 40, .count = 20}}, 3);
  const std::vector<float> expected = problem.PromptAll();
  EXPECT_LT(problem.Error(expected), this->kBound);
  problem.LimitSharedBytes(99 * 1024);
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    EXPECT_EQ(problem.PromptAll(), expected) << NameOf(options);
  }
}

// Shared memory has 32 banks of 4 bytes, and serves 8 lanes of 16 bytes at once if they touch each bank once.
template <int pieces_of_row>
void CheckBanks() {
  const auto banks_of = [](const auto& row, const auto& piece) {
    std::set<int> banks;
    for (int lane = 0; lane < 8; ++lane) {
      banks.insert(PieceOffset<pieces_of_row>(row(lane), piece(lane)) / 16 % 8);
    }
    return banks.size();
  };
  for (int first = 0; first < kPageRows; first += 8) {
    for (int piece = 0; piece < pieces_of_row; ++piece) {
      EXPECT_EQ(banks_of([&](int lane) { return first + lane; }, [&](int) { return piece; }), 8)
          << "LoadMatricesTransposed";
    }
    for (int row = first; row < first + 8; row += 2) {
      for (int c = 0; c < pieces_of_row / 4; ++c) {
        EXPECT_EQ(banks_of([&](int lane) { return row + lane / 4; }, [&](int lane) { return 4 * c + lane % 4; }), 8)
            << "fragments";
      }
    }
  }
}
TEST(PieceOffset, LetsEightLanesMeetNoBankTwice) {
  CheckBanks<4>();   // 32 channels of bfloat16
  CheckBanks<8>();   // 64, or 32 of float32
  CheckBanks<16>();  // 128, or 64
  CheckBanks<32>();  // 128 of float32
}

TEST(QueryTiles, AreOfOneSliceAndSegment) {
  // Slice 0: two rows. Slice 1: 3 rows of a segment, then 130 of the next.
  std::vector<int64_t> slices = {0, 0, 1, 1, 1}, starts = {0, 0, 60, 60, 60};
  slices.resize(135, 1);
  starts.resize(135, 120);
  const QueryTiles tiles = TilesOf(slices, starts, 3);
  EXPECT_THAT(tiles.rows, ::testing::ElementsAre(0, 1));
  EXPECT_THAT(tiles.tiles, ::testing::ElementsAre(2, 3, 5, 64, 69, 64, 133, 2));
}

// With so wide heads, each of the four warps has channels of its own.
TYPED_TEST(GpuCausalAttention, IsTheSameInEveryOrderOfThreads) {
  const AttentionModel model = {
      .heads = 1, .head_width = 64, .window_length = 30, .memory_length = 40, .segment_length = 40};
  std::vector<float> first;
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    typename TestFixture::Problem problem(*this->device_, model, {{.position = 70, .segment_start = 40, .count = 20}},
                                          3);
    const std::vector<float> output = problem.PromptAll();
    EXPECT_LT(problem.Error(output), this->kBound) << NameOf(options);
    if (first.empty()) first = output;
    EXPECT_EQ(output, first) << NameOf(options);
    EXPECT_EQ(problem.DecodeAll(), first) << NameOf(options);
  }
}

}  // namespace longshort::models::cuda::gpu_causal_attention_test
