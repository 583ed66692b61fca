#include "models/ops/document_layer/document_layer.h"

#include <algorithm>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(extern const DocumentLayerKernels kDocumentLayerKernels;)

int64_t LandmarkSumsFloats(const DocumentLayer& layer) {
  return 2 * layer.projection_columns() + 2 * layer.width * layer.padded_rank();
}

int64_t ClsSumsFloats(const DocumentLayer& layer) { return 2 * layer.heads + layer.width; }

int64_t DocumentLayerScratchFloats(const DocumentLayer& layer, int64_t shared, int64_t max_keys) {
  const int64_t block = layer.block_floats(), inner = layer.feed_forward_width * kBlockRows;
  // Normalised rows; weights of the landmarks with their factors, read a vector beyond their end.
  const int64_t collect = block + (kBlockRows + 1) * layer.projection_columns() + kLanes;
  // Normalised rows, queries, scores.
  const int64_t attend = 2 * block + (shared + max_keys) * kBlockRows;
  // The CLS row's attention and hidden row; normalised rows, and those of the feed-forward part.
  const int64_t finish = 3 * block + inner;
  return std::max({collect, attend, finish});
}

const DocumentLayerKernels& DocumentLayerKernelsFor(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return avx512::kDocumentLayerKernels;
    case InstructionSet::kAvx2:
      return avx2::kDocumentLayerKernels;
    case InstructionSet::kBaseline:
      return baseline::kDocumentLayerKernels;
  }
  return baseline::kDocumentLayerKernels;
}

}  // namespace longshort::models::cpu
