// One layer of a text classifier for blocks of a document's rows, with everything between two barriers fused: norms,
// products, attention, softmax and GELU of a block stay in the cache. It equals TextLayer on LibTorch
// (models/families/text_classifier/text_layer.h), which has the equations, up to rounding.
//
// A vector's lanes are rows of the document: a block is [channels][kBlockRows]. So a row's norm or softmax needs no sum
// over lanes, and any number of channels and heads fits. Lanes without a row hold finite numbers that nothing reads.
//
// A layer has two passes over the blocks. Each block may run on another thread, and the caller waits between passes:
//   1. collect_block for each block, then finish_landmarks; with CLS, project_cls before;
//   2. attend_block, and finish_block if later layers read the rows; for CLS add_to_cls, then finish_cls.
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

inline constexpr int64_t kBlockRows = 64;

struct RowMap {
  const float* weight = nullptr;  // [out][in]
  const float* bias = nullptr;    // [out]
};

struct DocumentLayer {
  int64_t width = 0, heads = 0, feed_forward_width = 0;
  int64_t rank = 0;  // landmarks; 0: none
  bool norms_after = false;
  RowNorm norm1, norm2, window_norm, shared_norm;
  RowMap query, key, value, output, feed_forward_in, feed_forward_out;
  // [width][projection_columns()], of heads * rank columns and padding. A bias would change no softmax over rows.
  const float* projection = nullptr;

  int64_t head_width() const { return width / heads; }
  int64_t projection_columns() const { return PaddedHeadWidth(heads * rank); }
  int64_t padded_rank() const { return PaddedHeadWidth(rank); }
  int64_t block_floats() const { return width * kBlockRows; }
};

// A document's rows in one layer. Blocks follow each other, [blocks][width][kBlockRows].
struct LayerRows {
  int64_t rows = 0;
  const WindowSegment* segments = nullptr;  // each row is a query of one segment, in row order
  int64_t segment_count = 0;
  float* hidden = nullptr;  // the layer's input; FinishBlock replaces it by its output
  float* keys = nullptr;    // after window_norm
  float* values = nullptr;
  int64_t shared = 0;            // vectors that all rows see: CLS, if there is one, then the landmarks
  float* shared_keys = nullptr;  // [shared][width]
  float* shared_values = nullptr;
};

// Sums of e^score and of products with it, relative to the maximum of the scores.
//   landmarks  DocumentLayer's projection_columns() maxima and sums, then keys and values, [heads][head_width][
//              padded_rank()] each
//   CLS        heads maxima and sums, then [width]
int64_t LandmarkSumsFloats(const DocumentLayer& layer);
int64_t ClsSumsFloats(const DocumentLayer& layer);

// Size of the `scratch` of all calls below, in floats.
//   max_keys  that a block's rows see together
int64_t DocumentLayerScratchFloats(const DocumentLayer& layer, int64_t shared, int64_t max_keys);

// The functions for one instruction set. Sums of several blocks go into one `sums` if `first` is true for the first.
struct DocumentLayerKernels {
  // Computes keys and values of a block, and adds to the landmarks' `sums`.
  void (*collect_block)(const DocumentLayer& layer, const LayerRows& rows, int64_t block, bool first, float* sums,
                        float* scratch);
  // Writes the landmarks of `count` sums, LandmarkSumsFloats apart, to the last rows of shared_keys and shared_values.
  void (*finish_landmarks)(const DocumentLayer& layer, const LayerRows& rows, const float* sums, int64_t count);
  // attended [width][kBlockRows] of a block.
  void (*attend_block)(const DocumentLayer& layer, const LayerRows& rows, int64_t block, float* attended,
                       float* scratch);
  // Replaces the hidden rows [width][kBlockRows] of `rows` <= kBlockRows rows by the layer's output.
  void (*finish_block)(const DocumentLayer& layer, const float* attended, int64_t rows, float* hidden, float* scratch);

  // Computes query (scaled), key and value of a CLS row, [width] each.
  //   normalized  norm1 normalises it
  void (*project_cls)(const DocumentLayer& layer, const float* cls, bool normalized, float* query, float* key,
                      float* value, float* scratch);
  // y = norm(x), [width] each. Without a norm a copy.
  void (*normalize_row)(const RowNorm& norm, int64_t width, const float* x, float* y);
  // Adds attention from CLS to the rows of a block to `sums`.
  //   keys, values  [width][kBlockRows]
  void (*add_to_cls)(const DocumentLayer& layer, const float* query, const float* keys, const float* values,
                     int64_t rows, bool first, float* sums, float* scratch);
  // Replaces `cls` by the layer's output, from its own key and value and `count` sums, ClsSumsFloats floats apart.
  void (*finish_cls)(const DocumentLayer& layer, const float* query, const float* key, const float* value,
                     const float* sums, int64_t count, float* cls, float* scratch);
};

const DocumentLayerKernels& DocumentLayerKernelsFor(InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
