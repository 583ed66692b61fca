// A language model in the form that its steps on a GPU use: weights, tables that depend on the weights alone, and the
// memory of cache pages.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/device/gpu_device.h"
#include "models/device/gpu_memory.h"
#include "models/device/model_gpu.h"
#include "models/device/pages.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/gpu_step.h"
#include "models/families/language_model/language_model_config.h"
#include "models/model.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/layers/linear.h"
#include "models/ops/products/row_products.h"

namespace longshort::models {

// The memory of cache pages on a GPU:
//
//   window or segment page   as in models/device/pages.h
//   open chunk page          for each layer: C rows of OpenRowFloats, float32
//   (models/ops/causal_attention/cache_rows.h)

// The layout of a page: `parts` consecutive parts of `rows` rows each.
struct GpuPageLayout {
  int64_t parts = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;

  int64_t page_bytes() const { return parts * rows * row_bytes; }
};

// Pages of one kind, numbered from 0, and their access from the host. Thread: the worker's.
class GpuPages final {
 public:
  // The device must outlive this object.
  GpuPages(GpuDevice& device, const GpuPageLayout& layout) : device_(device), layout_(layout) {}

  // Discards the previous pages. Errors: those of GpuDevice; then there are no pages.
  absl::Status Allocate(int64_t pages);

  int64_t page_bytes() const { return layout_.page_bytes(); }
  // The device address of page 0.
  char* data() const { return memory_.data(); }

  // As in LanguageModelBackend.
  absl::Status Copy(PageId from, PageId to);
  absl::StatusOr<std::string> Read(PageId page, const PageRows& rows) const;
  absl::Status Write(PageId page, std::string_view bytes);

 private:
  char* PageAt(PageId page) const { return memory_.data() + page * page_bytes(); }

  GpuDevice& device_;
  GpuPageLayout layout_;
  GpuMemory memory_;
  GpuMemory staging_;  // pinned, one page
};

inline constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// One layer. Tensors are on the GPU. Kernels add the biases of products, so biases are float32; undefined: none.
struct GpuLayer {
  // Maps of the same rows are one product. A kernel takes the time of some microseconds, however small it is.
  at::Tensor projections;  // queries, keys, values, logits of the dynamic projection, zeros: [3d + columns, d]
  at::Tensor keys_values;  // the part of keys and values, [2d, d]
  at::Tensor keys_values_bias;
  Linear output, feed_forward_in, feed_forward_out;
  LayerNorm window_norm, chunk_norm, norm1, norm2;
  // Added to queries that are multiplied by 1/sqrt(head_dim), [d]; they include the bias of the queries' map.
  at::Tensor window_bias, relative_bias, query_bias;
  at::Tensor window_distances, chunk_distances;  // [H, count, padded head width], of the pages' type
};

// The memory of a worker's steps, besides LibTorch's.
struct StepMemoryBytes {
  int64_t numbers = 0, partial_results = 0, logits = 0;
};

// Attention of single rows launches its kernels for so many rows at once, which bounds the memory of partial results.
inline constexpr int64_t kSingleRowsAtOnce = 1024;

// Shared by all replicas.
struct GpuDecoder {
  // The decoder is on the GPU. Each of its layers is freed as soon as it is converted.
  GpuDecoder(Decoder decoder, int64_t max_graph_rows);

  int64_t head_width() const { return config.model_width / config.heads; }
  float query_scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(head_width()))); }
  int64_t memory_vectors() const { return config.memory_length / config.chunk_size * config.chunk_rank; }
  int64_t segment_vectors() const { return config.segment_length / config.chunk_size * config.chunk_rank; }
  int64_t max_key_blocks() const {
    return cuda::MaxKeyBlocks(config.window_length, memory_vectors(), segment_vectors());
  }
  cuda::ElementType kernel_element() const {
    return element() == at::kFloat ? cuda::ElementType::kFloat : cuda::ElementType::kBFloat16;
  }

  GpuPageLayout PageLayout() const;  // of window and segment pages
  int64_t OpenRowFloats() const;
  GpuPageLayout OpenChunkLayout() const;
  // The size of the partial results of `single_rows` single rows.
  int64_t PartialResultBytes(int64_t single_rows) const;

  // Whether steps of few rows have their own products (row_products.h). In float32 they don't: tensor cores would lose
  // the last bits.
  bool has_row_products() const {
    return element() == at::kBFloat16 && cuda::FitsRowProducts(config.model_width) &&
           config.model_width <= cuda::kMaxNormedWidth && cuda::FitsRowProducts(config.feed_forward_width);
  }

  StepLimits Limits() const;

  // Of products, pages and distances.
  at::ScalarType element() const { return output.weight.scalar_type(); }

  LanguageModelConfig config;
  at::Tensor embedding;  // [V, d], float32
  Linear output;
  std::vector<GpuLayer> layers;
  std::vector<StepShape> shapes;       // of a worker's graphs
  StepMemoryBytes graph_memory_bytes;  // of all graphs together
  StepMemoryBytes largest_step_bytes;  // of steps without a graph, whose logits are LibTorch's
};

// --- the layers of a step ---
//
// The same function as DecoderLayer's (decoder.h), which is the plain form, in 7 kernels per layer for few rows in
// bfloat16 (row_products.h), and in 10 for more. Between LibTorch's products of more rows, kernels read and write all
// rows:
//   - The residual branch is float32. A sum is computed by the norm behind it, or with the requested rows at the end.
//   - Products have the type of the matrices, in and out. The kernels that read a product add its bias.
//   - DualLN is computed where keys and values are written to pages.

// Device addresses of a worker's pages.
struct GpuCache {
  char* window = nullptr;
  char* segment = nullptr;
  float* open_chunks = nullptr;
  char* zero_window = nullptr;  // one page each
  char* zero_segment = nullptr;
};

// Sets every row of the zero pages: keys and values of zero memory. Throws as WorkerGpu does.
void WriteZeroPages(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache);

// Queues all layers of a step. REQUIRES: the step's numbers are queued in `memory`.
//   logits  [logit rows, V] float32, to write; undefined if there are no such rows
void QueueLayers(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache, const GpuStep& step,
                 StepMemory& memory, at::Tensor logits);

}  // namespace longshort::models
