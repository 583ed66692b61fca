// The language model's kernels together, as a backend calls them: a stream through one layer's attention, cut into
// steps that StepPlan plans, against the reference ops segment by segment.

#include <algorithm>
#include <memory>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/families/language_model/step_plan.h"
#include "models/ops/causal_attention/cache_rows.h"
#include "models/ops/causal_attention/causal_attention.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/causal_attention/query_tiles.h"
#include "models/ops/landmarks/dynamic_projection.h"
#include "models/ops/layers/linear.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::cuda::layer_step_test {

constexpr int64_t kHeads = 2, kHeadWidth = 12, kWidth = kHeads * kHeadWidth, kTokens = 96;
constexpr int64_t kChunk = 4, kRank = 2, kWindow = 10, kMemory = 16, kSegment = 8;
constexpr int64_t kVectors = kMemory / kChunk * kRank;  // of the memory

class LayerStep : public ::testing::Test {
 protected:
  LayerStep() {
    at::manual_seed(1);
    info_.chunk_size = kChunk;
    info_.chunk_rank = kRank;
    info_.window_length = kWindow;
    info_.memory_length = kMemory;
    info_.segment_length = kSegment;
    info_.rows_per_page = kPageRows;
  }

  static at::Tensor Random(at::IntArrayRef shape) { return at::randn(shape, at::kFloat); }

  // --- the reference ---

  // Rows first .. end-1 of `rows` [tokens, ...], and `zero` for those before the stream.
  static at::Tensor RowsFrom(const at::Tensor& rows, const at::Tensor& zero, int64_t first, int64_t end) {
    std::vector<at::Tensor> parts;
    for (int64_t row = first; row < end; ++row) parts.push_back(row < 0 ? zero : rows[row]);
    return at::stack(parts);
  }
  // Vectors [rows / C * R, 2, d] of whole chunks, after DualLN: as memory, or as their own segment sees them.
  at::Tensor Compressed(int64_t first, int64_t end, bool as_memory) const {
    const at::Tensor weights = ProjectionWeights(logits_.slice(0, first, end).unsqueeze(0), kHeads, kChunk);
    const auto mix = [&](const at::Tensor& rows) {
      return longshort::models::MixChunks(weights, rows.unsqueeze(0)).squeeze(0);
    };
    if (as_memory) return chunk_norm_(key_and_value_(mix(inputs_.slice(0, first, end))).unflatten(-1, {2, kWidth}));
    const at::Tensor mixed = at::stack(
        {mix(keys_values_.select(1, 0).slice(0, first, end)), mix(keys_values_.select(1, 1).slice(0, first, end))}, 1);
    return chunk_norm_(mixed);
  }
  static at::Tensor ByHead(const at::Tensor& rows) { return rows.view({1, -1, kHeads, kHeadWidth}); }
  at::Tensor Expected() const {
    const at::Tensor window = window_norm_(keys_values_), memory = Compressed(0, kTokens, /*as_memory=*/true);
    std::vector<at::Tensor> outputs;
    for (int64_t start = 0; start < kTokens; start += kSegment) {
      const at::Tensor near = RowsFrom(window, window_norm_(zero_), start - kWindow + 1, start + kSegment);
      const int64_t vector = start / kChunk * kRank;
      at::Tensor far = RowsFrom(memory, chunk_norm_(zero_), vector - kVectors, vector);
      far = at::cat({far, Compressed(start, start + kSegment - kChunk, /*as_memory=*/false)});
      outputs.push_back(longshort::models::CausalAttention(
          ByHead(queries_.slice(0, start, start + kSegment)), ByHead(near.select(1, 0).contiguous()),
          ByHead(near.select(1, 1).contiguous()), ByHead(far.select(1, 0).contiguous()),
          ByHead(far.select(1, 1).contiguous()), kVectors, kChunk, kRank, positions_));
    }
    return at::cat(outputs, 1).squeeze(0);
  }

  // --- the kernels ---

  float* Shared(int64_t floats) {
    return static_cast<float*>(device_->Allocate(floats * sizeof(float), GpuMemoryUse::kLibraryToo).value());
  }
  // A copy of a tensor in memory that LibTorch may read, too.
  float* Put(const at::Tensor& tensor) {
    float* const memory = Shared(tensor.numel());
    std::copy_n(tensor.contiguous().const_data_ptr<float>(), tensor.numel(), memory);
    return memory;
  }
  int64_t* Put(const std::vector<int64_t>& numbers) {
    auto* const memory = static_cast<int64_t*>(
        device_->Allocate((numbers.size() + 1) * sizeof(int64_t), GpuMemoryUse::kLibraryToo).value());
    std::copy(numbers.begin(), numbers.end(), memory);
    return memory;
  }
  void Launch(const KernelCall& call) { ASSERT_TRUE(device_->Launch(call).ok()); }

  // [heads, count, padded head width], of [count, heads, head_width].
  float* PutDistances(const at::Tensor& positions) {
    return Put(at::constant_pad_nd(positions.transpose(0, 1), {0, PaddedHeadWidth(kHeadWidth) - kHeadWidth}));
  }
  NewKeys Keys(float* rows, const int64_t* slots, int64_t count, const LayerNorm& norm, float* pages) {
    return {.row = ElementType::kFloat,
            .keys_values = {.data = rows, .stride = 2 * kWidth},
            .biases = nullptr,
            .norm = {.gain = Put(norm.gain), .bias = Put(norm.bias)},
            .slots = slots,
            .count = count,
            .pages = pages};
  }
  static WriteRows NoRows() {
    return {.element = ElementType::kFloat,
            .heads = kHeads,
            .head_width = kHeadWidth,
            .epsilon = 1e-5f,
            .page_elements = LayerElements(kHeads, kHeadWidth),
            .window = {},
            .memory = {},
            .segment = {},
            .kept = {}};
  }

  void MakeCache() {
    for (float** const pages : {&window_pages_, &segment_pages_, &window_zero_, &segment_zero_}) {
      *pages = static_cast<float*>(
          device_->Allocate(3 * LayerElements(kHeads, kHeadWidth) * sizeof(float), GpuMemoryUse::kKernels).value());
    }
    std::vector<int64_t> slots(kPageRows);
    for (int i = 0; i < kPageRows; ++i) slots[i] = i;
    WriteRows zero = NoRows();
    zero.window = Keys(Put(zero_), Put(slots), kPageRows, window_norm_, window_zero_);
    zero.memory = Keys(Put(zero_), Put(slots), kPageRows, chunk_norm_, segment_zero_);
    zero.window.keys_values.stride = zero.memory.keys_values.stride = 0;
    Launch(WriteRowsCall(zero));
    open_chunks_ = static_cast<float*>(
        device_->Allocate(kChunk * OpenRowFloats(kWidth, kHeads * kRank) * sizeof(float), GpuMemoryUse::kKernels)
            .value());
  }

  // Rows position .. end-1 of the stream in one step.
  at::Tensor Step(int64_t position, int64_t end) {
    const int64_t count = end - position;
    const std::vector<int32_t> tokens(count, 0);
    // Window pages 0 and 1 of the cache, segment pages 0 for memory and 1 for segments: all vectors are in one page.
    const std::vector<PageId> window_ids = {kZeroPage, 0, 1}, memory_ids = {kZeroPage, 0}, segment_ids = {1};
    const Slice slice = {.tokens = tokens,
                         .position = position,
                         .segment_start = position / kSegment * kSegment,
                         .window_pages = {.first = -1, .ids = window_ids},
                         .memory_pages = {.first = -1, .ids = memory_ids},
                         .segment_pages = {.first = 0, .ids = segment_ids}};
    const StepPlan plan = PlanStep({&slice, 1}, info_);
    const int64_t* const numbers = Put(plan.numbers);
    const auto of = [&](const StepPlan::Array& array) { return numbers + array.first; };
    const auto rows = [&](const at::Tensor& all) { return Put(all.slice(0, position, end)); };

    const ChunkRows chunk_rows = {.row = ElementType::kFloat,
                                  .inputs = {.data = rows(inputs_), .stride = kWidth},
                                  .keys_values = {.data = rows(keys_values_), .stride = 2 * kWidth},
                                  .logits = {.data = rows(logits_), .stride = kHeads * kRank},
                                  .heads = kHeads,
                                  .head_width = kHeadWidth,
                                  .chunk_size = kChunk,
                                  .chunk_rank = kRank,
                                  .open_chunks = open_chunks_,
                                  .page_floats = 0};
    WriteRows write = NoRows();
    const int64_t full = plan.full_chunks();
    if (full > 0) {
      float* const mixed_inputs = Shared(full * kRank * kWidth);
      float* const mixed = Shared(full * kRank * 2 * kWidth);
      Launch(MixChunksCall({.rows = chunk_rows,
                            .chunk_ends = of(plan.chunk_ends),
                            .chunk_kept = of(plan.chunk_kept),
                            .chunk_pages = of(plan.chunk_pages),
                            .count = full,
                            .mixed_inputs = {.data = mixed_inputs, .stride = kWidth},
                            .mixed_keys_values = {.data = mixed, .stride = 2 * kWidth}}));
      EXPECT_TRUE(device_->BeforeLibraryCalls().ok());
      // Row by row: the library's products of several rows may differ in their last bits.
      std::vector<at::Tensor> projections;
      for (const at::Tensor& row : at::from_blob(mixed_inputs, {full * kRank, 1, kWidth}).unbind()) {
        projections.push_back(key_and_value_(row));
      }
      float* const projected = Put(at::cat(projections));
      write.memory = Keys(projected, of(plan.memory_slots), full * kRank, chunk_norm_, segment_pages_);
      write.segment = Keys(mixed, of(plan.segment_slots), full * kRank, chunk_norm_, segment_pages_);
    }
    write.window = Keys(rows(keys_values_), of(plan.window_slots), count, window_norm_, window_pages_);
    write.kept = {
        .rows = chunk_rows, .indices = of(plan.kept_rows), .slots = of(plan.kept_slots), .count = plan.kept_rows.size};
    Launch(WriteRowsCall(write));

    float* const output = Shared(count * kWidth);
    const auto pages = [&](const StepPlan::PageTables& tables, float* first, float* zero) {
      return KeyPages{
          .table = {.first_pages = of(tables.first_pages), .first_ids = of(tables.first_ids), .ids = of(tables.ids)},
          .pages = first,
          .zero_page = zero};
    };
    const CausalAttention attention = {.element = ElementType::kFloat,
                                       .row = ElementType::kFloat,
                                       .heads = kHeads,
                                       .head_width = kHeadWidth,
                                       .window_length = kWindow,
                                       .chunk_size = kChunk,
                                       .chunk_rank = kRank,
                                       .memory_vectors = kVectors,
                                       .window_bias = Put(positions_.window_bias),
                                       .relative_bias = Put(positions_.relative_bias),
                                       .query_bias = nullptr,
                                       .window_distances = PutDistances(positions_.window),
                                       .chunk_distances = PutDistances(positions_.chunk),
                                       .chunk_distance_count = static_cast<int>(positions_.chunk.size(0)),
                                       .positions = of(plan.positions),
                                       .segment_starts = of(plan.segment_starts),
                                       .row_slices = of(plan.row_slices),
                                       .memory = pages(plan.memory, segment_pages_, segment_zero_),
                                       .segment = pages(plan.segment, segment_pages_, segment_zero_),
                                       .window = pages(plan.window, window_pages_, window_zero_),
                                       .page_elements = LayerElements(kHeads, kHeadWidth),
                                       .queries = rows(queries_),
                                       .query_scale = 1,
                                       .query_stride = kWidth,
                                       .output = output,
                                       .output_stride = kWidth};
    const QueryTiles tiles = TilesOf(plan.Of(plan.row_slices), plan.Of(plan.segment_starts), /*min_rows=*/4);
    const auto alone = static_cast<int64_t>(tiles.rows.size());
    const int64_t blocks = MaxKeyBlocks(kWindow, kVectors, kSegment / kChunk * kRank);
    const DecodeAttention decode = {
        .attention = attention,
        .rows = Put(tiles.rows),
        .row_count = static_cast<int>(alone),
        .max_blocks = static_cast<int>(blocks),
        .partial_outputs = Shared(alone * kHeads * blocks * PaddedHeadWidth(kHeadWidth) + 1),
        .partial_sums = Shared(alone * kHeads * blocks * 2 + 1)};
    Launch(AttendToBlocksCall(decode));
    Launch(MergeBlocksCall(decode));
    Launch(PromptAttentionCall(
        {.attention = attention, .tiles = Put(tiles.tiles), .tile_count = static_cast<int>(tiles.tiles.size() / 2)},
        device_->facts().max_shared_bytes));
    const absl::Status status = device_->BeforeLibraryCalls();
    EXPECT_TRUE(status.ok()) << status;
    return at::from_blob(output, {count, kWidth}).clone();
  }

  LanguageModelInfo info_;
  std::unique_ptr<EmulatedDevice> device_ = MakeEmulatedDevice();
  float *window_pages_ = nullptr, *segment_pages_ = nullptr, *window_zero_ = nullptr, *segment_zero_ = nullptr;
  float* open_chunks_ = nullptr;

  const at::Tensor inputs_ = Random({kTokens, kWidth}), keys_values_ = Random({kTokens, 2, kWidth});
  const at::Tensor logits_ = Random({kTokens, kHeads*kRank}), queries_ = Random({kTokens, kWidth});
  const at::Tensor zero_ = Random({2, kWidth});  // key and value of zero memory
  const LayerNorm window_norm_ = {.gain = Random({kWidth}), .bias = Random({kWidth})};
  const LayerNorm chunk_norm_ = {.gain = Random({kWidth}), .bias = Random({kWidth})};
  const Linear key_and_value_ = {.weight = Random({2 * kWidth, kWidth}), .bias = Random({2 * kWidth})};
  const RelativePositions positions_ = {
      .window = Random({kWindow, kHeads, kHeadWidth}),
      .chunk = Random({((kMemory + kSegment) / kChunk - 1) * kRank, kHeads, kHeadWidth}),
      .window_bias = Random({kHeads, kHeadWidth}),
      .relative_bias = Random({kHeads, kHeadWidth})};
};

TEST_F(LayerStep, IsTheReferenceOpHoweverTheStreamIsCut) {
  const at::Tensor expected = Expected();
  at::Tensor first_cut;
  for (const std::vector<int64_t>& cut : {std::vector<int64_t>{kTokens}, {5, 1, 1, 9, 3, 21, 7, 49}}) {
    MakeCache();
    std::vector<at::Tensor> outputs;
    int64_t position = 0;
    for (const int64_t count : cut) {
      outputs.push_back(Step(position, position + count));
      position += count;
    }
    const at::Tensor output = at::cat(outputs);
    EXPECT_LT((output - expected).abs().max().item<float>(), 2e-5f);
    if (!first_cut.defined()) first_cut = output;
    EXPECT_TRUE(at::equal(output, first_cut));
  }
}

}  // namespace longshort::models::cuda::layer_step_test
