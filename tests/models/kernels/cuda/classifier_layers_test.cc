// The classifiers' kernels together, between LibTorch's products as a GPU's layers would call them, against the layers
// as they are served: the text layer, and ViL's sparse attention.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/image_classifier/vil_attention.h"
#include "models/image_classifier/vil_position_bias.h"
#include "models/kernels/cuda/cls_attention.h"
#include "models/kernels/cuda/document_attention.h"
#include "models/kernels/cuda/document_tiles.h"
#include "models/kernels/cuda/landmarks.h"
#include "models/kernels/cuda/window_attention_2d.h"
#include "models/layers/linear.h"
#include "models/text_classifier/text_layer.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::cuda {
namespace {

constexpr int64_t kHeads = 2, kWidth = 24, kHeadWidth = kWidth / kHeads, kRank = 3;
const float kScale = 1 / std::sqrt(static_cast<float>(kHeadWidth));

class ClassifierLayers : public ::testing::Test {
 protected:
  ClassifierLayers() { at::manual_seed(1); }

  static at::Tensor Random(at::IntArrayRef shape) { return at::randn(shape, at::kFloat); }
  static at::Tensor Nothing(at::IntArrayRef shape) { return at::full(shape, NAN, at::kFloat); }
  static Linear RandomLinear(int64_t out, int64_t in) {
    return {.weight = Random({out, in}) / std::sqrt(static_cast<double>(in)), .bias = Random({out})};
  }
  static LayerNorm RandomNorm() { return {.gain = Random({kWidth}), .bias = Random({kWidth})}; }

  // Rows of [..., d], from a token or an image's token on.
  static Rows RowsOf(const at::Tensor& rows) {
    return {.data = const_cast<void*>(rows.const_data_ptr()), .stride = rows.stride(-2)};
  }
  static NormWeights WeightsOf(const LayerNorm& norm) {
    return {.gain = norm.gain.const_data_ptr<float>(), .bias = norm.bias.const_data_ptr<float>()};
  }
  static RowAttention RowAttentionOf(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                     const at::Tensor& shared_keys, const at::Tensor& shared_values,
                                     const at::Tensor& output) {
    return {.element = ElementType::kFloat,
            .heads = kHeads,
            .head_width = kHeadWidth,
            .scale = kScale,
            .queries = RowsOf(queries),
            .keys = RowsOf(keys),
            .values = RowsOf(values),
            .shared = static_cast<int>(shared_keys.size(1)),
            .shared_keys = RowsOf(shared_keys),
            .shared_values = RowsOf(shared_values),
            .output = RowsOf(output)};
  }
  void Launch(const KernelCall& call) { ASSERT_TRUE(device_->Launch(call).ok()); }
  void Finish() { ASSERT_TRUE(device_->Synchronize().ok()); }

  static int64_t MostRows(const std::vector<ItemRows>& items) {
    int64_t most = 0;
    for (const ItemRows& item : items) most = std::max(most, item.rows);
    return most;
  }
  // Writes the landmarks of all items: the last kRank of each one's shared vectors, [items, m, d].
  void MakeLandmarks(const std::vector<ItemRows>& items, const at::Tensor& logits, const at::Tensor& keys,
                     const at::Tensor& values, const LayerNorm& norm, const at::Tensor& shared_keys,
                     const at::Tensor& shared_values) {
    const auto count = static_cast<int64_t>(items.size()), splits = LandmarkSplitsOf(MostRows(items));
    const at::Tensor outputs = Nothing({count, splits, 2, kRank, kHeads, PaddedHeadWidth(kHeadWidth)});
    const at::Tensor sums = Nothing({count, splits, kRank, kHeads, 2});
    const auto vectors = static_cast<int>(shared_keys.size(1));
    const Landmarks landmarks = {.element = ElementType::kFloat,
                                 .heads = kHeads,
                                 .head_width = kHeadWidth,
                                 .rank = kRank,
                                 .items = static_cast<int>(count),
                                 .most_splits = static_cast<int>(splits),
                                 .ranges = items.data(),
                                 .logits = RowsOf(logits),
                                 .keys = RowsOf(keys),
                                 .values = RowsOf(values),
                                 .key_norm = WeightsOf(norm),
                                 .value_norm = WeightsOf(norm),
                                 .epsilon = static_cast<float>(norm.epsilon),
                                 .landmark_keys = RowsOf(shared_keys),
                                 .landmark_values = RowsOf(shared_values),
                                 .item_vectors = vectors,
                                 .first_vector = vectors - static_cast<int>(kRank),
                                 .partial_outputs = outputs.mutable_data_ptr<float>(),
                                 .partial_sums = sums.mutable_data_ptr<float>()};
    Launch(MixSplitsCall(landmarks));
    Launch(MergeSplitsCall(landmarks));
    Finish();
  }
  // Writes `output` [items, d].
  void AttendFromCls(const std::vector<ItemRows>& items, const at::Tensor& queries, const at::Tensor& keys,
                     const at::Tensor& values, const at::Tensor& rows, const at::Tensor& output) {
    const auto count = static_cast<int64_t>(items.size()), splits = SplitsOf(MostRows(items));
    const at::Tensor outputs = Nothing({count, kHeads, splits, PaddedHeadWidth(kHeadWidth)});
    const at::Tensor sums = Nothing({count, kHeads, splits, 2});
    const ClsAttention attention = {.element = ElementType::kFloat,
                                    .heads = kHeads,
                                    .head_width = kHeadWidth,
                                    .scale = kScale,
                                    .items = static_cast<int>(count),
                                    .most_splits = static_cast<int>(splits),
                                    .ranges = items.data(),
                                    .queries = RowsOf(queries),
                                    .keys = RowsOf(keys),
                                    .values = RowsOf(values),
                                    .rows = RowsOf(rows),
                                    .output = RowsOf(output),
                                    .partial_outputs = outputs.mutable_data_ptr<float>(),
                                    .partial_sums = sums.mutable_data_ptr<float>()};
    Launch(AttendToRowsCall(attention));
    Launch(MergeRowsCall(attention));
    Finish();
  }

  std::unique_ptr<EmulatedDevice> device_ = MakeEmulatedDevice();
};

TEST_F(ClassifierLayers, AreTheTextLayer) {
  TextLayer layer;
  layer.norm1 = RandomNorm();
  layer.norm2 = RandomNorm();
  layer.window_norm = RandomNorm();
  layer.shared_norm = RandomNorm();
  for (Linear* const map : {&layer.query, &layer.key, &layer.value, &layer.output}) *map = RandomLinear(kWidth, kWidth);
  layer.dynamic_projection = RandomLinear(kHeads * kRank, kWidth);
  layer.feed_forward_in = RandomLinear(2 * kWidth, kWidth);
  layer.feed_forward_out = RandomLinear(kWidth, 2 * kWidth);
  layer.heads = kHeads;
  // One token; masked ones within and at the end; more than a tile.
  std::vector<std::vector<int32_t>> ids = {{7}, std::vector<int32_t>(40, 1), std::vector<int32_t>(100, 2)};
  std::fill(ids[1].begin() + 9, ids[1].begin() + 20, 0);
  ids[1].resize(60, 0);
  const DocumentBatch batch = MakeDocumentBatch(std::vector<absl::Span<const int32_t>>(ids.begin(), ids.end()),
                                                {.size = 16, .see_nothing = false});
  const int64_t documents = batch.documents(), shared = 1 + kRank;
  const HiddenRows hidden = {.tokens = Random({batch.packed->rows(), kWidth}), .cls = Random({documents, kWidth})};
  int64_t multiply_adds = 0;
  const HiddenRows expected = layer(hidden, batch, /*cls_only=*/false, multiply_adds);

  DocumentTiles tiles;
  std::vector<ItemRows> items;
  for (const PackedDocument& document : batch.packed->documents) {
    tiles.Add(document.segments);
    items.push_back({.first_row = document.first_row, .rows = document.rows});
  }
  const at::Tensor tokens = layer.norm1(hidden.tokens);
  const at::Tensor cls_keys = layer.key(hidden.cls), cls_values = layer.value(hidden.cls);
  const at::Tensor cls_queries = layer.query(hidden.cls), queries = layer.query(tokens);
  const at::Tensor keys = layer.window_norm(layer.key(tokens)), values = layer.window_norm(layer.value(tokens));
  const at::Tensor shared_keys = Nothing({documents, shared, kWidth}), shared_values = at::empty_like(shared_keys);
  const at::Tensor logits = layer.dynamic_projection(tokens);
  MakeLandmarks(items, logits, keys, values, layer.shared_norm, shared_keys, shared_values);
  const NormWeights norm = WeightsOf(layer.shared_norm);
  for (const auto& [from, to] : {std::pair{cls_keys, shared_keys}, {cls_values, shared_values}}) {
    Launch(NormRowsCall({.row = ElementType::kFloat,
                         .input = RowsOf(from),
                         .addend = {},
                         .addend_bias = nullptr,
                         .gain = norm.gain,
                         .bias = norm.bias,
                         .epsilon = static_cast<float>(layer.shared_norm.epsilon),
                         .count = documents,
                         .width = kWidth,
                         .output = {.data = to.mutable_data_ptr(), .stride = shared * kWidth}}));
  }
  const at::Tensor attended = Nothing({batch.packed->rows(), kWidth}), cls_attended = Nothing({documents, kWidth});
  Launch(
      DocumentAttentionCall({.attention = RowAttentionOf(queries, keys, values, shared_keys, shared_values, attended),
                             .tiles = tiles.tiles.data(),
                             .tile_count = static_cast<int>(tiles.tiles.size()),
                             .windows = tiles.windows.data()}));
  AttendFromCls(items, cls_queries, cls_keys, cls_values, attended, cls_attended);

  const auto finish = [&](const at::Tensor& rows, const at::Tensor& mixed) {
    const at::Tensor middle = rows + layer.output(mixed);
    return middle + layer.feed_forward_out(at::gelu(layer.feed_forward_in(layer.norm2(middle))));
  };
  EXPECT_LT((finish(hidden.tokens, attended) - expected.tokens).abs().max().item<float>(), 2e-5);
  EXPECT_LT((finish(hidden.cls, cls_attended) - expected.cls).abs().max().item<float>(), 2e-5);
}

TEST_F(ClassifierLayers, AreVilsSparseAttention) {
  constexpr int64_t kSide = 8, kWindow = 4, kImages = 2, kPatches = kSide * kSide;
  const at::Tensor index = WindowBiasIndex(kWindow, at::kCPU);
  const VilSparseAttention vil = {.query_key_value = RandomLinear(3 * kWidth, kWidth),
                                  .dynamic_projection = RandomLinear(kHeads * kRank, kWidth),
                                  .landmark_norm = RandomNorm(),
                                  .full_norm = RandomNorm(),
                                  .bias_table = Random({index.max().item<int64_t>() + 1, kHeads}),
                                  .bias_index = index,
                                  .output = RandomLinear(kWidth, kWidth),
                                  .heads = kHeads,
                                  .global_tokens = 1,
                                  .window_size = kWindow,
                                  .side = kSide};
  const at::Tensor rows = Random({kImages, 1 + kPatches, kWidth});
  const at::Tensor expected = vil(rows);

  std::vector<ItemRows> items;
  for (int64_t image = 0; image < kImages; ++image) {
    items.push_back({.first_row = image * (1 + kPatches) + 1, .rows = kPatches});
  }
  const at::Tensor projected = vil.query_key_value(rows);
  const at::Tensor queries = projected.narrow(2, 0, kWidth);
  const at::Tensor keys = vil.full_norm(projected.narrow(2, kWidth, kWidth));
  const at::Tensor values = vil.full_norm(projected.narrow(2, 2 * kWidth, kWidth));
  const at::Tensor shared_keys = Nothing({kImages, 1 + kRank, kWidth}), shared_values = at::empty_like(shared_keys);
  const at::Tensor logits = vil.dynamic_projection(rows);
  shared_keys.select(1, 0).copy_(keys.select(1, 0));
  shared_values.select(1, 0).copy_(values.select(1, 0));
  MakeLandmarks(items, logits, keys, values, vil.landmark_norm, shared_keys, shared_values);
  const at::Tensor attended = Nothing({kImages, 1 + kPatches, kWidth});
  const auto patches = [](const at::Tensor& all) { return all.narrow(1, 1, kPatches); };
  const at::Tensor table = vil.bias_table.t().contiguous();
  Launch(WindowAttention2dCall(
      {.attention = RowAttentionOf(patches(queries), patches(keys), patches(values), shared_keys, shared_values,
                                   patches(attended)),
       .images = kImages,
       .image_rows = 1 + kPatches,
       .height = kSide,
       .width = kSide,
       .side = kWindow,
       .bias = WindowBias(table.const_data_ptr<float>(), static_cast<int>(table.size(1)), static_cast<int>(kWindow))}));
  const auto global = [](const at::Tensor& all) { return all.select(1, 0); };
  AttendFromCls(items, global(queries), global(keys), global(values), attended, global(attended));
  EXPECT_LT((vil.output(attended) - expected).abs().max().item<float>(), 2e-5);
}

}  // namespace
}  // namespace longshort::cuda
