// Documents of any lengths as the rows of one matrix: one row per token, without padding; and what the functions of
// autograd over such rows share.
//
// Masked tokens get no rows, because no result depends on them.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/core/ivalue.h"
#include "absl/types/span.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models {

// The windows of a document. Its positions are split into segments of `size`. A token sees its own segment and max(size
// / 2, 1) more positions on either side. With size 0, a token sees itself, or, with see_nothing, no token.
struct WindowRule {
  int64_t size = 0;
  bool see_nothing = false;

  int64_t segment() const { return size == 0 ? 1 : size; }
  int64_t margin() const { return size == 0 ? 0 : size == 1 ? 1 : size / 2; }
};

// The tokens that have rows.
struct TokenRule {
  int64_t padding_id = 0;  // masked
  // The first token of each document that is not masked stands apart, as its CLS row, and masked tokens have no
  // positions. Otherwise positions and windows count masked tokens.
  bool first_apart = false;
};

// The tokens of packed documents, as a GPU gets them; it computes windows itself (document_places_kernels.h).
struct PackedIds {
  std::vector<int32_t> ids;        // [rows], none is masked
  std::vector<int32_t> positions;  // [rows], as in PackedDocuments; empty if each document has positions 0, 1, 2, ...
  std::vector<int32_t> cls_ids;    // [documents], as in PackedDocuments
  std::vector<int64_t> lengths;    // [documents]: rows of each
  WindowRule windows;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
};

// REQUIRES: every document has a token that is not masked.
PackedIds PackIds(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                  const TokenRule& tokens = {});

struct PackedDocument {
  int64_t first_row = 0;
  int64_t rows = 0;
  // Each row is a query of one segment, in row order.
  std::vector<WindowSegment> segments;

  // The number of pairs of a query and a key of its window.
  int64_t VisiblePairs() const;
};

struct PackedDocuments {
  std::vector<int64_t> ids;        // [rows], none is masked
  std::vector<int64_t> positions;  // [rows]: ascending within a document; from 0, without the token that stands apart
  std::vector<int64_t> cls_ids;    // [documents]: of the CLS rows that are tokens; empty if there are none
  std::vector<PackedDocument> documents;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  // The number of rows of each document.
  std::vector<int64_t> Lengths() const;
};

// The same with positions and windows. REQUIRES: as PackIds.
PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                              const TokenRule& tokens = {});

// What a batch's multiply-adds depend on.
struct DocumentCounts {
  int64_t rows = 0;
  int64_t documents = 0;
  int64_t visible_pairs = 0;    // of a query and a key of its window
  int64_t convolved_pairs = 0;  // of a row and a row that its convolution reads
};
// `taps`: of the convolution; 0: there is none.
DocumentCounts CountsOf(const PackedDocuments& packed, int64_t taps);
DocumentCounts CountsOf(const PackedIds& packed, int64_t taps);

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
