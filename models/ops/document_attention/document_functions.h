// What the functions of autograd over rows of heads share.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "ATen/core/Tensor.h"
#include "ATen/core/ivalue.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/rows/head_rows.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models {

// One head's channels of a matrix's rows from `row` on; the matrix may be [rows, D] or [documents, m, D].
inline cpu::HeadRows<const float> RowsFrom(const at::Tensor& matrix, int64_t row, int64_t channel) {
  return {matrix.const_data_ptr<float>() + row * matrix.size(-1) + channel, matrix.size(-1)};
}
inline cpu::HeadRows<float> MutableRowsFrom(const at::Tensor& matrix, int64_t row, int64_t channel) {
  return {matrix.mutable_data_ptr<float>() + row * matrix.size(-1) + channel, matrix.size(-1)};
}

// Whether kernels can read these rows [rows, D] without copies of each head: float32 on the CPU, and heads of whole
// vectors.
inline bool HaveVectorHeads(int64_t heads, const at::Tensor& rows) {
  return rows.is_cpu() && rows.scalar_type() == at::kFloat && rows.size(1) / heads % cpu::kLanes == 0;
}

// Keeps packed documents alive for a gradient.
class HeldDocuments final : public torch::CustomClassHolder {
 public:
  explicit HeldDocuments(std::shared_ptr<const PackedDocuments> packed) : packed_(std::move(packed)) {}

  static c10::IValue Hold(std::shared_ptr<const PackedDocuments> packed) {
    return c10::IValue::make_capsule(c10::make_intrusive<HeldDocuments>(std::move(packed)));
  }
  static const PackedDocuments& In(const c10::IValue& value) {
    return *c10::static_intrusive_pointer_cast<HeldDocuments>(value.toCapsule())->packed_;
  }

 private:
  std::shared_ptr<const PackedDocuments> packed_;
};

}  // namespace longshort::models
