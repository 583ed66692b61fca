// ItemAttention by the kernels for CPUs, and on LibTorch's ops where these have no form for the type or for
// gradients. Differentiable. The CPU serves it, training runs it, and it is the reference of the GPU kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

// Thread-safe: methods modify only their arguments.
class CpuItemAttention final : public ItemAttention {
 public:
  // For images.
  CpuItemAttention() = default;
  // For images and this batch of documents. Gradients keep the batch alive.
  explicit CpuItemAttention(std::shared_ptr<const PackedDocuments> packed) : packed_(std::move(packed)) {}

  at::Tensor AttendInDocuments(const RowsToAttend& rows, int64_t others) override;
  at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                           const WindowBias& bias, int64_t others) override;
  RowKeyValues Landmarks(const RowsToCompress& rows, int64_t others) override;
  void AttendToRows(const OwnRowsToAttend& rows) override;
  void ConvolveValues(const RowsToConvolve& rows) override;
  at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) override;

 private:
  std::shared_ptr<const PackedDocuments> packed_;
};

// Returns the batch's tokens as tensors on `device`.
DocumentTokens TokensOf(const PackedDocuments& packed, const at::Device& device = at::kCPU);

}  // namespace longshort::models
