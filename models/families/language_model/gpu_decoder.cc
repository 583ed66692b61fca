#include "models/families/language_model/gpu_decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/ops/causal_attention/cache_rows.h"

namespace longshort::models {
namespace {

// positions [count, heads, head_width] -> [heads, count, padded head width].
at::Tensor KernelLayout(const at::Tensor& positions, at::ScalarType element) {
  const int64_t padding = cuda::PaddedHeadWidth(positions.size(2)) - positions.size(2);
  return at::constant_pad_nd(positions.transpose(0, 1), {0, padding}).to(element).contiguous();
}

GpuLayer LayerOf(const DecoderLayer& layer, const RelativePositions& positions, const GpuDecoder& decoder) {
  const int64_t width = decoder.config.model_width, columns = decoder.config.heads * decoder.config.chunk_rank;
  const at::Tensor& queries_logits = layer.query_and_logits.weight;
  // Rows of products are aligned for vectors.
  constexpr int64_t kAlignment = 8;
  const at::Tensor padding = at::zeros({-(3 * width + columns) & (kAlignment - 1), width}, queries_logits.options());
  GpuLayer made;
  made.projections = at::cat({queries_logits.narrow(0, 0, width), layer.key_and_value.weight,
                              queries_logits.narrow(0, width, columns), padding});
  made.keys_values = made.projections.narrow(0, width, 2 * width);
  made.keys_values_bias = layer.key_and_value.bias;
  made.output = layer.output;
  made.feed_forward_in = layer.feed_forward_in;
  made.feed_forward_out = layer.feed_forward_out;
  made.window_norm = layer.window_norm;
  made.chunk_norm = layer.chunk_norm;
  made.norm1 = layer.norm1;
  made.norm2 = layer.norm2;
  made.window_bias = layer.window_bias.flatten();
  made.relative_bias = layer.relative_bias.flatten();
  if (decoder.config.projection_bias) {
    made.query_bias = layer.query_and_logits.bias.narrow(0, 0, width) * decoder.query_scale();
    made.window_bias = made.window_bias + made.query_bias;
    made.relative_bias = made.relative_bias + made.query_bias;
  }
  made.window_distances = KernelLayout(positions.window, decoder.element());
  made.chunk_distances = KernelLayout(positions.chunk, decoder.element());
  return made;
}

int64_t NumbersBytes(const StepShape& shape) {
  const auto but_ids = static_cast<int64_t>(Pad({}, StepTiles({}), shape).plan.numbers.size());
  return (but_ids + shape.page_ids) * static_cast<int64_t>(sizeof(int64_t));
}

StepMemoryBytes BytesFor(const std::vector<StepShape>& shapes, const GpuDecoder& decoder) {
  StepMemoryBytes bytes;
  for (const StepShape& shape : shapes) {
    bytes.numbers = std::max(bytes.numbers, NumbersBytes(shape));
    bytes.partial_results = std::max(bytes.partial_results, decoder.PartialResultBytes(shape.single_rows));
    bytes.logits = std::max(bytes.logits, shape.rows * decoder.config.vocabulary_size * kFloatBytes);
  }
  return bytes;
}

}  // namespace

GpuDecoder::GpuDecoder(Decoder decoder, int64_t max_graph_rows)
    : config(decoder.config),
      embedding(decoder.embedding),
      output(decoder.output),
      shapes(ShapesOfGraphs(config, max_graph_rows)) {
  const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
  for (DecoderLayer& layer : decoder.layers) {
    layers.push_back(LayerOf(layer, layer.Positions(window_table, chunk_table), *this));
    layer = {};
  }
  graph_memory_bytes = BytesFor(shapes, *this);
  // The largest step of single tokens has the most page ids.
  largest_step_bytes = {.numbers = NumbersBytes(LargestShape(config, kMaxStepRows)),
                        .partial_results = PartialResultBytes(kSingleRowsAtOnce)};
}

GpuPageLayout GpuDecoder::PageLayout() const {
  return {.parts = config.layers * config.heads * 2,
          .rows = cuda::kPageRows,
          .row_bytes = cuda::PaddedHeadWidth(head_width()) * cuda::ElementBytes(kernel_element())};
}

int64_t GpuDecoder::OpenRowFloats() const {
  return cuda::OpenRowFloats(config.model_width, config.heads * config.chunk_rank);
}

GpuPageLayout GpuDecoder::OpenChunkLayout() const {
  return {.parts = config.layers, .rows = config.chunk_size, .row_bytes = OpenRowFloats() * kFloatBytes};
}

int64_t GpuDecoder::PartialResultBytes(int64_t single_rows) const {
  return single_rows * config.heads * max_key_blocks() * (cuda::PaddedHeadWidth(head_width()) + 2) * kFloatBytes;
}

StepLimits GpuDecoder::Limits() const {
  // Logits that fit 128 MiB, but those of 1,024 streams in any case.
  constexpr int64_t kLogits = (int64_t{128} << 20) / kFloatBytes, kMinRows = 1024;
  return {.rows = kMaxStepRows, .logit_rows = std::clamp(kLogits / config.vocabulary_size, kMinRows, kMaxStepRows)};
}

absl::Status GpuPages::Allocate(int64_t pages) {
  LS_RETURN_IF_ERROR(device_.Synchronize());
  memory_ = {};
  if (pages == 0) return absl::OkStatus();
  if (pages > std::numeric_limits<int64_t>::max() / page_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(pages, " pages of ", page_bytes(), " bytes exceed the memory of any GPU"));
  }
  LS_ASSIGN_OR_RETURN(staging_, GpuMemory::Pinned(device_, page_bytes()));
  LS_ASSIGN_OR_RETURN(memory_, GpuMemory::OnDevice(device_, pages * page_bytes(), GpuMemoryUse::kKernels));
  return absl::OkStatus();
}

absl::Status GpuPages::Copy(PageId from, PageId to) {
  return from == to ? absl::OkStatus() : device_.Copy(PageAt(to), PageAt(from), page_bytes());
}

absl::StatusOr<std::string> GpuPages::Read(PageId page, const PageRows& rows) const {
  LS_RETURN_IF_ERROR(device_.Copy(staging_.data(), PageAt(page), page_bytes()));
  LS_RETURN_IF_ERROR(device_.Synchronize());
  std::string bytes(page_bytes(), '\0');
  for (int64_t part = 0; part < layout_.parts; ++part) {
    const int64_t first = (part * layout_.rows + rows.first) * layout_.row_bytes;
    std::copy_n(staging_.data() + first, (rows.end - rows.first) * layout_.row_bytes, bytes.data() + first);
  }
  return bytes;
}

absl::Status GpuPages::Write(PageId page, std::string_view bytes) {
  std::memcpy(staging_.data(), bytes.data(), bytes.size());
  LS_RETURN_IF_ERROR(device_.Copy(PageAt(page), staging_.data(), page_bytes()));
  return device_.Synchronize();
}

}  // namespace longshort::models
