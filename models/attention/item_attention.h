// Attention of a batch of items (documents, images): what a classifier's layers ask of their device between LibTorch's
// products. cpu_item_attention.h is differentiable, gpu_item_attention.h has the kernels of a GPU.
//
// Rows of items, d = heads * head_width channels each, are
//   documents  [rows, d]: those of the batch that runs
//   images     [images, tokens, d]: all tokens of each image, or some that follow each other
// of float32 or bfloat16. They may lie apart, but as far from each other in all tensors of a call; channels are beside
// each other.
//
// What is thrown is LibTorch's (c10::OutOfMemoryError if the device has no memory, too), or std::runtime_error if the
// device fails.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/long_short_attention_2d.h"
#include "models/layers/linear.h"

namespace longshort::models {

struct RowKeyValues {
  at::Tensor keys;
  at::Tensor values;
};

// Attention from all rows to what each sees of its item, and to vectors that all rows of the item see.
struct RowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // rows of items, not scaled
  RowKeyValues tokens;  // rows of items
  RowKeyValues shared;  // [items, m, d], m >= 0; contiguous if m > 1
};

// Added to the window scores of grids.
struct WindowBias {
  at::Tensor table;  // [positions, heads], float32 on GPUs; undefined: none
  at::Tensor index;  // WindowBiasIndex (positions.h), if there is a table
};

// The dynamic projection of whole items, to R vectors each.
struct RowsToCompress {
  int64_t heads = 0;
  at::Tensor logits;               // rows of items, heads * R channels
  RowKeyValues tokens;             // rows of items
  LayerNorm key_norm, value_norm;  // of what comes out, with the same epsilon
};

// Attention from one row of each item to itself and to the item's rows, which are keys and values at once.
struct OwnRowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // [items, d], not scaled
  RowKeyValues own;     // [items, d]
  at::Tensor rows;      // rows of items
  at::Tensor attended;  // [items, d]: to be written
};

// Values of documents to be convolved along positions, and added to rows.
struct RowsToConvolve {
  int64_t heads = 0;
  at::Tensor taps;    // [heads, kernel], contiguous, of the rows' type; kernel odd
  at::Tensor values;  // rows of documents
  at::Tensor sums;    // rows of documents: to be added to
};

// What layers read of a batch of documents, on their device.
struct DocumentTokens {
  at::Tensor ids;        // [rows] int64
  at::Tensor positions;  // [rows] int64
  int64_t documents = 0;
};

class ItemAttention {
 public:
  virtual ~ItemAttention() = default;

  // As LongShortAttention1d, for each document of the batch. Returns rows like the queries. REQUIRES: every row sees
  // something.
  virtual at::Tensor AttendInDocuments(const RowsToAttend& rows) = 0;
  // As LongShortAttention2d, for each image. Returns [images, others + tokens, d]: the first `others` rows are for the
  // caller to write. On a GPU there are as many other rows before the tokens of the queries.
  virtual at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                                   const WindowBias& bias, int64_t others) = 0;
  // Vectors of each item, [items, others + R, d]: the first `others` are for the caller to write, then its landmarks.
  virtual RowKeyValues Landmarks(const RowsToCompress& rows, int64_t others) = 0;
  virtual void AttendToRows(const OwnRowsToAttend& rows) = 0;
  // As ConvolveValues (long_short_attention_1d.h), for each document.
  virtual void ConvolveValues(const RowsToConvolve& rows) = 0;
  // Sums of each item's rows, divided by `length`: [items, d].
  virtual at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) = 0;
};

}  // namespace longshort::models
