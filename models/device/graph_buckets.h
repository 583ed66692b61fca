// Graph buckets: the sizes of steps and batches that GPUs run as graphs.
//
// A graph has a fixed size. So a worker captures a graph for each bucket. A step or batch runs as the smallest bucket
// that fits it, padded to the bucket's size. A step or batch that fits no bucket runs without a graph.
#pragma once

#include <cstdint>

namespace longshort::models {

// The largest buckets. For larger steps and batches, launch overhead does not matter.
struct GraphLimits {
  // Rows of a language model's step. Its graphs are captured after the pages are allocated.
  int64_t rows = 512;
  // Images, of the size in the classifier's configuration.
  int64_t images = 32;
  // Documents in a batch, and their total rows.
  int64_t documents = 32;
  int64_t document_rows = 4096;
};

// Rows of a step, smallest first. Sizes first double; they grow by half where arithmetic dominates launch overhead.
inline constexpr int64_t kStepRowBuckets[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

// Classifiers' buckets, largest first: the memory that LibTorch reserves for the first graph then suffices for the
// others, which reuse it. There is a graph for every combination of rows and documents.
inline constexpr int64_t kDocumentRowBuckets[] = {4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 192, 128, 64};
inline constexpr int64_t kDocumentBuckets[] = {32, 16, 8, 4, 2, 1};
// Padding is less than a fifth of the batch.
inline constexpr int64_t kImageBuckets[] = {32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};

}  // namespace longshort::models
