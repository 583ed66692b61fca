#include "models/ops/document_attention/long_short_attention_1d.h"

#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort::models {
namespace {

struct RowPairs {
  std::vector<int64_t> to, from;  // [pairs]
};

// All pairs of rows of one document whose positions are `distance` apart: position(from) = position(to) + distance.
RowPairs RowsApart(const PackedDocuments& packed, int64_t distance) {
  RowPairs pairs;
  for (const PackedDocument& document : packed.documents) {
    const int64_t end = document.first_row + document.rows;
    for (int64_t row = document.first_row, other = row; row < end; ++row) {
      while (other < end && packed.positions[other] < packed.positions[row] + distance) ++other;
      if (other == end) break;
      if (packed.positions[other] != packed.positions[row] + distance) continue;
      pairs.to.push_back(row);
      pairs.from.push_back(other);
    }
  }
  return pairs;
}

}  // namespace

at::Tensor LongShortAttention1d(const PackedDocument& document, const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, const at::Tensor& shared_keys,
                                const at::Tensor& shared_values) {
  if (document.rows == 0) return queries;
  const at::Tensor by_head = queries.transpose(0, 1);
  std::vector<at::Tensor> attended;
  for (const WindowSegment& segment : document.segments) {
    // The keys and values that the segment sees: [heads, m + keys, head_dim].
    const auto visible = [&segment](const at::Tensor& shared, const at::Tensor& rows) {
      return at::cat({shared, rows.slice(0, segment.first_key, segment.end_key)}).transpose(0, 1);
    };
    const at::Tensor scores = at::matmul(by_head.slice(1, segment.first_query, segment.end_query),
                                         visible(shared_keys, keys).transpose(1, 2));
    attended.push_back(at::matmul(scores.softmax(-1), visible(shared_values, values)));
  }
  return at::cat(attended, 1).transpose(0, 1);
}

at::Tensor ConvolveValues(const PackedDocuments& packed, const at::Tensor& values, const at::Tensor& taps) {
  const int64_t kernel = taps.size(1);
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(values.device());
  at::Tensor sum = at::zeros_like(values);
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const RowPairs pairs = RowsApart(packed, tap - kernel / 2);
    const at::Tensor read = values.index_select(0, at::tensor(pairs.from, integers)) * taps.select(1, tap).unsqueeze(1);
    sum = sum.index_add(0, at::tensor(pairs.to, integers), read);
  }
  return sum;
}

int64_t ConvolvedPairs(const PackedDocuments& packed, int64_t kernel) {
  int64_t pairs = 0;
  for (const PackedDocument& document : packed.documents) {
    const int64_t end_row = document.first_row + document.rows;
    // The row reads [begin, end).
    for (int64_t row = document.first_row, begin = row, end = row; row < end_row; ++row) {
      while (packed.positions[begin] < packed.positions[row] - kernel / 2) ++begin;
      while (end < end_row && packed.positions[end] <= packed.positions[row] + kernel / 2) ++end;
      pairs += end - begin;
    }
  }
  return pairs;
}

}  // namespace longshort::models
