#include "models/language_model/gpu_tables.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "models/gpu/cache_rows.h"

namespace longshort::models {
namespace {

// positions [count, heads, head_width] -> [heads, count, padded head width].
at::Tensor KernelLayout(const at::Tensor& positions, at::ScalarType element) {
  const int64_t padding = cuda::PaddedHeadWidth(positions.size(2)) - positions.size(2);
  return at::constant_pad_nd(positions.transpose(0, 1), {0, padding}).to(element).contiguous();
}

GraphMemoryBytes BytesFor(const std::vector<StepShape>& shapes, const SharedTables& tables) {
  GraphMemoryBytes bytes;
  for (const StepShape& shape : shapes) {
    const auto but_ids = static_cast<int64_t>(Pad({}, StepTiles({}), shape).plan.numbers.size());
    const int64_t numbers = (but_ids + shape.page_ids) * static_cast<int64_t>(sizeof(int64_t));
    bytes.numbers = std::max(bytes.numbers, numbers);
    bytes.partial_results = std::max(bytes.partial_results, tables.PartialResultBytes(shape.single_rows));
    bytes.logits = std::max(bytes.logits, shape.rows * tables.config.vocabulary_size * kFloatBytes);
  }
  return bytes;
}

}  // namespace

SharedTables::SharedTables(const Decoder& decoder, at::ScalarType element, int64_t max_graph_rows)
    : config(decoder.config), element(element), shapes(ShapesOfGraphs(config, max_graph_rows)) {
  const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
  for (const DecoderLayer& layer : decoder.layers) {
    const RelativePositions positions = layer.Positions(window_table, chunk_table);
    layers.push_back({.window_bias = positions.window_bias.contiguous(),
                      .relative_bias = positions.relative_bias.contiguous(),
                      .window_distances = KernelLayout(positions.window, element),
                      .chunk_distances = KernelLayout(positions.chunk, element)});
  }
  graph_memory_bytes = BytesFor(shapes, *this);
}

GpuPageLayout SharedTables::PageLayout() const {
  return {.parts = config.layers * config.heads * 2,
          .rows = cuda::kPageRows,
          .row_bytes = cuda::PaddedHeadWidth(head_width()) * cuda::ElementBytes(kernel_element())};
}

int64_t SharedTables::OpenRowFloats() const {
  return cuda::OpenRowFloats(config.model_width, config.heads * config.chunk_rank);
}

GpuPageLayout SharedTables::OpenChunkLayout() const {
  return {.parts = config.layers, .rows = config.chunk_size, .row_bytes = OpenRowFloats() * kFloatBytes};
}

int64_t SharedTables::PartialResultBytes(int64_t single_rows) const {
  return single_rows * config.heads * max_key_blocks() * (cuda::PaddedHeadWidth(head_width()) + 2) * kFloatBytes;
}

}  // namespace longshort::models
