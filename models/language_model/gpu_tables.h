// What is computed of the weights alone for a model on a GPU, and how its pages lie.
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

// What one layer's attention needs beside rows and pages; tensors of the GPU.
struct LayerTables {
  at::Tensor window_bias, relative_bias;         // [H, head_dim], float32
  at::Tensor window_distances, chunk_distances;  // [H, count, padded head width], of the pages' type
};

// What a worker's graphs take together.
struct GraphMemoryBytes {
  int64_t numbers = 0, partial_results = 0, logits = 0;
};

// What is computed from the weights alone, for all replicas.
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
  // What so many single rows of a step leave for their merging.
  int64_t PartialResultBytes(int64_t single_rows) const;

  LanguageModelConfig config;
  at::ScalarType element;
  std::vector<LayerTables> layers;
  std::vector<StepShape> shapes;  // of a worker's graphs
  GraphMemoryBytes graph_memory_bytes;
};

}  // namespace longshort::models
