#include "models/language_model/gpu_tables.h"

#include "ATen/Functions.h"
#include "models/gpu/cache_rows.h"

namespace longshort {
namespace {

// positions [count, heads, head_width] -> [heads, count, padded head width].
at::Tensor KernelLayout(const at::Tensor& positions, at::ScalarType element) {
  const int64_t padding = cuda::PaddedHeadWidth(positions.size(2)) - positions.size(2);
  return at::constant_pad_nd(positions.transpose(0, 1), {0, padding}).to(element).contiguous();
}

}  // namespace

SharedTables::SharedTables(const Decoder& decoder, at::ScalarType element) : config(decoder.config), element(element) {
  const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
  for (const DecoderLayer& layer : decoder.layers) {
    const RelativePositions positions = layer.Positions(window_table, chunk_table);
    layers.push_back({.window_bias = positions.window_bias.contiguous(),
                      .relative_bias = positions.relative_bias.contiguous(),
                      .window_distances = KernelLayout(positions.window, element),
                      .chunk_distances = KernelLayout(positions.chunk, element)});
  }
}

GpuPageLayout LayoutOfPages(const SharedTables& tables) {
  const LanguageModelConfig& config = tables.config;
  return {.parts = config.layers * config.heads * 2,
          .rows = cuda::kPageRows,
          .row_bytes = cuda::PaddedHeadWidth(tables.head_width()) * cuda::ElementBytes(tables.kernel_element())};
}

int64_t OpenRowFloats(const SharedTables& tables) {
  return cuda::OpenRowFloats(tables.config.model_width, tables.config.heads * tables.config.chunk_rank);
}

}  // namespace longshort
