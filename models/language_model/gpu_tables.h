// Tables of a model on a GPU that depend on the weights alone, and the layout of its pages.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/gpu/causal_attention.h"
#include "models/gpu/pages.h"
#include "models/language_model/decoder.h"
#include "models/language_model/gpu_pages.h"
#include "models/language_model/gpu_step.h"
#include "models/weights/language_model_config.h"

namespace longshort::models {

inline constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// The inputs of one layer's attention besides rows and pages; tensors on the GPU.
struct LayerTables {
  at::Tensor window_bias, relative_bias;         // [H, head_dim], float32
  at::Tensor window_distances, chunk_distances;  // [H, count, padded head width], of the pages' type
};

// The total memory of a worker's graphs.
struct GraphMemoryBytes {
  int64_t numbers = 0, partial_results = 0, logits = 0;
};

// Shared by all replicas.
struct SharedTables {
  SharedTables(const Decoder& decoder, at::ScalarType element, int64_t max_graph_rows);

  int64_t head_width() const { return config.model_width / config.heads; }
  int64_t memory_vectors() const { return config.memory_length / config.chunk_size * config.chunk_rank; }
  int64_t segment_vectors() const { return config.segment_length / config.chunk_size * config.chunk_rank; }
  int64_t max_key_blocks() const {
    return cuda::MaxKeyBlocks(config.window_length, memory_vectors(), segment_vectors());
  }
  cuda::ElementType kernel_element() const {
    return element == at::kFloat ? cuda::ElementType::kFloat : cuda::ElementType::kBFloat16;
  }

  GpuPageLayout PageLayout() const;  // of window and segment pages
  int64_t OpenRowFloats() const;
  GpuPageLayout OpenChunkLayout() const;
  // The size of the partial results of `single_rows` single rows.
  int64_t PartialResultBytes(int64_t single_rows) const;

  LanguageModelConfig config;
  at::ScalarType element;
  std::vector<LayerTables> layers;
  std::vector<StepShape> shapes;  // of a worker's graphs
  GraphMemoryBytes graph_memory_bytes;
};

}  // namespace longshort::models
