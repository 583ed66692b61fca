// Attention of a batch of items (documents, images): the operations of a classifier's layers, besides LibTorch's
// products, that depend on the device. CpuItemAttention is differentiable; gpu_item_attention.h uses GPU kernels.
//
// "Rows of items" have d = heads * head_width channels each, in float32 or bfloat16:
//   documents  [rows, d]: all rows of the current batch
//   images     [images, tokens, d]: all tokens of each image, or some consecutive ones
// Rows may have a stride, which must be the same in all tensors of a call. Channels are contiguous.
//
// Calls throw LibTorch's exceptions (c10::OutOfMemoryError if the device has no memory), or std::runtime_error if the
// device fails.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/layers/dropout.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

struct RowKeyValues {
  at::Tensor keys;
  at::Tensor values;
};

// Attention of all rows to the rows of their items that they see, and to vectors that all rows of an item see.
struct RowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // rows of items, not scaled
  RowKeyValues tokens;  // rows of items
  RowKeyValues shared;  // [items, m, d], m >= 0; contiguous if m > 1
};

// A bias on the window scores of grids.
struct WindowBias {
  at::Tensor table;  // [positions, heads], float32 on GPUs; undefined: none
  at::Tensor index;  // WindowBiasIndex (grid_attention.h), if there is a table
  // BiasOfPairs of them WithVectorBehind (grid_attention.h), if it was made before, for serving on the CPU.
  at::Tensor for_kernel = {};
};

// The dynamic projection of whole items to R vectors each.
struct RowsToCompress {
  int64_t heads = 0;
  at::Tensor logits;               // rows of items, heads * R channels
  RowKeyValues tokens;             // rows of items
  LayerNorm key_norm, value_norm;  // of the result, with the same epsilon
  bool norms_before = false;       // of the vector before it, too
};

// Attention of one row per item to itself and to the item's rows. Long Range Arena's models and ViL pass the same rows
// as keys and values.
struct OwnRowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // [items, d], not scaled
  RowKeyValues own;     // [items, d]
  RowKeyValues rows;    // rows of items
  at::Tensor attended;  // [items, d], written
};

// Convolution of documents' values along positions, added to rows.
struct RowsToConvolve {
  int64_t heads = 0;
  at::Tensor taps;    // [heads, kernel], contiguous, of the rows' type; kernel odd
  at::Tensor values;  // rows of documents
  at::Tensor sums;    // rows of documents, added to
};

// A batch of documents as layers read it, on their device.
struct DocumentTokens {
  at::Tensor ids;        // [rows] int64, on GPUs int32
  at::Tensor positions;  // [rows] int64
  at::Tensor lengths;    // [documents] int64: rows of each
  at::Tensor cls_ids;    // [documents], of the type of ids; meaningless if CLS rows are not tokens
  int64_t documents = 0;
  const PackedDocuments* packed = nullptr;  // the same on the host; null: not there
};

class ItemAttention {
 public:
  virtual ~ItemAttention() = default;

  // LongShortAttention1d for each document of the batch. Returns [others + rows, d]: the caller writes the first
  // `others` rows. REQUIRES: every row sees at least one key.
  virtual at::Tensor AttendInDocuments(const RowsToAttend& rows, int64_t others) = 0;
  // LongShortAttention2d for each image. Returns [images, others + tokens, d]: the caller writes the first `others`
  // rows. On a GPU the queries have `others` rows before the tokens, too.
  virtual at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                                   const WindowBias& bias, int64_t others) = 0;
  // Returns vectors of each item, [items, 1 + R, d]: the one `before`, [items, d], then the landmarks; if there is
  // none, only these.
  virtual RowKeyValues Landmarks(const RowsToCompress& rows, const RowKeyValues& before) = 0;
  virtual void AttendToRows(const OwnRowsToAttend& rows) = 0;
  // ConvolveValues (document_attention.h) for each document.
  virtual void ConvolveValues(const RowsToConvolve& rows) = 0;
  // Returns the sums of each item's rows, divided by `length`: [items, d].
  virtual at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) = 0;

  // Operations beside attention, by LibTorch and the kernels for CPUs. On GPUs each is one kernel.

  // Returns table[ids] + position_table[positions], [rows, d].
  virtual at::Tensor Embed(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& position_table,
                           const at::Tensor& positions);
  // Returns rows + map(inputs).
  virtual at::Tensor Add(const Linear& map, const at::Tensor& inputs, const at::Tensor& rows);
  // Returns gelu(map(inputs)), by erf.
  virtual at::Tensor Gelu(const Linear& map, const at::Tensor& inputs);
  virtual at::Tensor Norm(const LayerNorm& norm, const at::Tensor& rows);
  // The norms of `rows` behind other rows: [others + rows, d].
  virtual at::Tensor NormBehind(const at::Tensor& others, const LayerNorm& norm, const at::Tensor& rows);
  // Norms with the same epsilon.
  virtual RowKeyValues NormBoth(const LayerNorm& key_norm, const LayerNorm& value_norm, const RowKeyValues& rows);
  // The dropout of a step of training, for the layers; null: none.
  virtual Dropout* dropout() const { return nullptr; }
};

// ItemAttention by the kernels for CPUs, and on LibTorch's ops where these have no form for the type or for
// gradients. Differentiable. The CPU serves it, training runs it, and it is the reference of the GPU kernels.
// Thread-safe without dropout: methods modify only their arguments.
class CpuItemAttention final : public ItemAttention {
 public:
  // For images.
  CpuItemAttention() = default;
  // For images and this batch of documents. Gradients keep the batch alive. Documents have this dropout.
  explicit CpuItemAttention(std::shared_ptr<const PackedDocuments> packed, Dropout* dropout = nullptr)
      : packed_(std::move(packed)), dropout_(dropout) {}

  at::Tensor AttendInDocuments(const RowsToAttend& rows, int64_t others) override;
  at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                           const WindowBias& bias, int64_t others) override;
  RowKeyValues Landmarks(const RowsToCompress& rows, const RowKeyValues& before) override;
  void AttendToRows(const OwnRowsToAttend& rows) override;
  void ConvolveValues(const RowsToConvolve& rows) override;
  at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) override;
  Dropout* dropout() const override { return dropout_; }

 private:
  std::shared_ptr<const PackedDocuments> packed_;
  Dropout* dropout_ = nullptr;
};

// Returns the batch's tokens as tensors on `device`.
DocumentTokens TokensOf(const PackedDocuments& packed, const at::Device& device = at::kCPU);

}  // namespace longshort::models
