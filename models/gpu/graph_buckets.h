// Graph buckets: the sizes of steps and batches that GPUs run as graphs.
//
// A graph has one size. So a worker captures a graph for each bucket, and a step or batch runs as the smallest one that
// has room for it, padded to the bucket's size. What no bucket has room for runs call by call.
#pragma once

#include <cstdint>

namespace longshort::models {

// The largest buckets. Larger steps and batches take so long that it does not matter what their calls cost.
struct GraphLimits {
  // Of rows of a language model's step. Its graphs are captured when there are pages.
  int64_t rows = 512;
  // Of images of the size that a classifier was made for.
  int64_t images = 32;
  // Of documents in a batch, and of their rows together.
  int64_t documents = 32;
  int64_t document_rows = 4096;
};

// Rows of a step, the smallest first: twice as many each time; then by half as many, where arithmetic takes more time
// than to begin it.
inline constexpr int64_t kStepRowBuckets[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

// Of classifiers the largest first: what LibTorch reserves for it is enough for the others, which have it in turn.
// Every number of rows has a graph for every number of documents.
inline constexpr int64_t kDocumentRowBuckets[] = {4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 192, 128, 64};
inline constexpr int64_t kDocumentBuckets[] = {32, 16, 8, 4, 2, 1};
// A batch is padded by less than a fifth of itself.
inline constexpr int64_t kImageBuckets[] = {32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};

}  // namespace longshort::models
