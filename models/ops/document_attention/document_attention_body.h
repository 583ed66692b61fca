// The body of document_attention.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/padded_rows_body.h"
#include "models/ops/rows/softmax_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Queries that are processed together.
inline constexpr int64_t kBlockQueries = 32;

// The sizes of a call's buffers, in floats.
struct Sizes {
  int64_t padded_width = 0;   // of rows of values
  int64_t padded_rows = 0;    // of columns of window keys
  int64_t padded_shared = 0;  // of columns of shared keys
  int64_t score_stride = 0;   // of the scores of a query: first the shared keys', then its window's

  int64_t columns(int64_t head_width) const { return head_width * padded_rows; }
  int64_t shared_columns(int64_t head_width) const { return head_width * padded_shared; }
  int64_t rows(int64_t count) const { return count * padded_width; }
  int64_t block_rows() const { return kBlockQueries * padded_width; }
  int64_t scores() const { return kBlockQueries * score_stride; }
};

Sizes SizesOf(const DocumentHead& head) {
  int64_t max_keys = 0;
  for (int64_t i = 0; i < head.segment_count; ++i) {
    const int64_t keys = head.segments[i].end_key - head.segments[i].first_key;
    max_keys = Max(keys, max_keys);
  }
  const int64_t padded_shared = PaddedHeadWidth(head.shared);
  return {.padded_width = PaddedHeadWidth(head.head_width),
          .padded_rows = SpreadStride(head.rows),
          .padded_shared = padded_shared,
          .score_stride = padded_shared + PaddedHeadWidth(max_keys)};
}

// Queries of a block that share one window.
struct Piece {
  int64_t first_query = 0;  // within the block
  int64_t queries = 0;
  int64_t first_key = 0;
  int64_t keys = 0;
};

// Queries first_row .. first_row + rows - 1, processed together.
struct Block {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_segment = 0;  // segment of the first query
};

// The piece of the block that begins at query `query`, in segment `segment`.
Piece PieceAt(const DocumentHead& head, const Block& block, int64_t query, int64_t segment) {
  const WindowSegment& window = head.segments[segment];
  const int64_t end = Min(window.end_query - block.first_row, block.rows);
  return {query, end - query, window.first_key, window.end_key - window.first_key};
}

// Moves to the next block; false after the last one.
bool Next(const DocumentHead& head, Block& block) {
  block.first_row += block.rows;
  if (block.first_row == head.rows) return false;
  block.rows = Min(head.rows - block.first_row, kBlockQueries);
  while (head.segments[block.first_segment].end_query <= block.first_row) ++block.first_segment;
  return true;
}

// out[query][key] for every visible pair of a block: the products of `rows` with the shared vectors, then with the
// window's keys. Padding columns are undefined.
//   shared  [head_width][padded_shared], window  [head_width][padded_rows]
void PairProducts(const DocumentHead& head, const Sizes& sizes, const Block& block, const HeadRows<const float>& rows,
                  const float* shared, const float* window, float* out) {
  const Left left{rows.data + block.first_row * rows.stride, rows.stride};
  Multiply<false>(block.rows, head.head_width, sizes.padded_shared, left, shared, sizes.padded_shared, out,
                  sizes.score_stride);
  int64_t segment = block.first_segment;
  for (int64_t query = 0; query < block.rows; ++segment) {
    const Piece piece = PieceAt(head, block, query, segment);
    Multiply<false>(piece.queries, head.head_width, PaddedHeadWidth(piece.keys),
                    {left.data + query * left.row_stride, left.row_stride}, window + piece.first_key, sizes.padded_rows,
                    out + query * sizes.score_stride + sizes.padded_shared, sizes.score_stride);
    query += piece.queries;
  }
}

// out[query] = the sum over the keys that it sees of factors[query][key] * rows[key].
//   shared  [shared][padded_width], window  [rows][padded_width]
void SumOverKeys(const DocumentHead& head, const Sizes& sizes, const Block& block, const float* factors,
                 const float* shared, const float* window, float* out) {
  const int64_t width = sizes.padded_width;
  Multiply<false>(block.rows, head.shared, width, {factors, sizes.score_stride}, shared, width, out, width);
  int64_t segment = block.first_segment;
  for (int64_t query = 0; query < block.rows; ++segment) {
    const Piece piece = PieceAt(head, block, query, segment);
    Multiply<true>(piece.queries, piece.keys, width,
                   {factors + query * sizes.score_stride + sizes.padded_shared, sizes.score_stride},
                   window + piece.first_key * width, width, out + query * width, width);
    query += piece.queries;
  }
}

// The transpose: adds factors[query][key] * rows[query] to the sum of each key, for the queries that see it.
//   rows  [block.rows][padded_width]
void AddOverQueries(const DocumentHead& head, const Sizes& sizes, const Block& block, const float* factors,
                    const float* rows, float* shared, float* window) {
  const int64_t width = sizes.padded_width;
  Multiply<true>(head.shared, block.rows, width, {factors, 1, sizes.score_stride}, rows, width, shared, width);
  int64_t segment = block.first_segment;
  for (int64_t query = 0; query < block.rows; ++segment) {
    const Piece piece = PieceAt(head, block, query, segment);
    Multiply<true>(piece.keys, piece.queries, width,
                   {factors + query * sizes.score_stride + sizes.padded_shared, 1, sizes.score_stride},
                   rows + query * width, width, window + piece.first_key * width, width);
    query += piece.queries;
  }
}

// Sets padding columns to -infinity. Returns the number of vectors in the row of scores.
int64_t HideFilling(const DocumentHead& head, const Sizes& sizes, const WindowSegment& segment, float* scores) {
  constexpr float kMinusInfinity = -__builtin_inff();
  const int64_t keys = segment.end_key - segment.first_key;
  Fill(scores + head.shared, sizes.padded_shared - head.shared, kMinusInfinity);
  const int64_t padded_keys = PaddedHeadWidth(keys);
  Fill(scores + sizes.padded_shared + keys, padded_keys - keys, kMinusInfinity);
  return (sizes.padded_shared + padded_keys) / kLanes;
}

}  // namespace

int64_t AttendDocumentScratchFloats(const DocumentHead& head) {
  const Sizes sizes = SizesOf(head);
  return sizes.columns(head.head_width) + sizes.shared_columns(head.head_width) + sizes.rows(head.rows + head.shared) +
         sizes.scores() + sizes.block_rows();
}

void AttendDocument(const DocumentHead& head, const DocumentOutput& output, float* scratch) {
  const Sizes sizes = SizesOf(head);
  const int64_t width = head.head_width, padded_width = sizes.padded_width;
  float* const keys = Take(scratch, sizes.columns(width));
  float* const shared_keys = Take(scratch, sizes.shared_columns(width));
  float* const values = Take(scratch, sizes.rows(head.rows));
  float* const shared_values = Take(scratch, sizes.rows(head.shared));
  float* const scores = Take(scratch, sizes.scores());
  float* const attended = Take(scratch, sizes.block_rows());
  Transpose(head.keys, head.rows, width, keys, sizes.padded_rows, head.query_scale);
  Transpose(head.shared_keys, head.shared, width, shared_keys, sizes.padded_shared, head.query_scale);
  Pad(head.values, head.rows, width, values, padded_width);
  Pad(head.shared_values, head.shared, width, shared_values, padded_width);

  for (Block block; Next(head, block);) {
    PairProducts(head, sizes, block, head.queries, shared_keys, keys, scores);
    int64_t segment = block.first_segment;
    for (int64_t query = 0; query < block.rows; ++query) {
      if (head.segments[segment].end_query == block.first_row + query) ++segment;
      float* const row = scores + query * sizes.score_stride;
      output.log_sums[block.first_row + query] = Softmax(row, HideFilling(head, sizes, head.segments[segment], row));
    }
    SumOverKeys(head, sizes, block, scores, shared_values, values, attended);
    Unpad(attended, padded_width, block.rows, width, From(output.attended, block.first_row));
  }
}

int64_t DocumentGradientScratchFloats(const DocumentHead& head) {
  const Sizes sizes = SizesOf(head);
  return 2 * (sizes.columns(head.head_width) + sizes.shared_columns(head.head_width)) +
         3 * sizes.rows(head.rows + head.shared) + 2 * sizes.scores() + sizes.block_rows();
}

void DifferentiateDocument(const DocumentHead& head, const DocumentGradients& gradients, float* scratch) {
  const Sizes sizes = SizesOf(head);
  const int64_t width = head.head_width, padded_width = sizes.padded_width;
  float* const key_columns = Take(scratch, sizes.columns(width));
  float* const value_columns = Take(scratch, sizes.columns(width));
  float* const shared_key_columns = Take(scratch, sizes.shared_columns(width));
  float* const shared_value_columns = Take(scratch, sizes.shared_columns(width));
  float* const keys = Take(scratch, sizes.rows(head.rows));
  float* const shared_keys = Take(scratch, sizes.rows(head.shared));
  // Gradients, summed block by block: keys, values, shared keys, shared values.
  float* const to_keys = Take(scratch, sizes.rows(head.rows));
  float* const to_values = Take(scratch, sizes.rows(head.rows));
  float* const to_shared_keys = Take(scratch, sizes.rows(head.shared));
  float* const to_shared_values = Take(scratch, sizes.rows(head.shared));
  float* const probabilities = Take(scratch, sizes.scores());
  float* const to_scores = Take(scratch, sizes.scores());
  float* const rows = Take(scratch, sizes.block_rows());
  Transpose(head.keys, head.rows, width, key_columns, sizes.padded_rows, head.query_scale);
  Transpose(head.values, head.rows, width, value_columns, sizes.padded_rows);
  Transpose(head.shared_keys, head.shared, width, shared_key_columns, sizes.padded_shared, head.query_scale);
  Transpose(head.shared_values, head.shared, width, shared_value_columns, sizes.padded_shared);
  Pad(head.keys, head.rows, width, keys, padded_width, head.query_scale);
  Pad(head.shared_keys, head.shared, width, shared_keys, padded_width, head.query_scale);
  Fill(to_keys, 2 * sizes.rows(head.rows + head.shared), 0.0f);

  for (Block block; Next(head, block);) {
    PairProducts(head, sizes, block, head.queries, shared_key_columns, key_columns, probabilities);
    PairProducts(head, sizes, block, gradients.attended, shared_value_columns, value_columns, to_scores);
    int64_t segment = block.first_segment;
    for (int64_t query = 0; query < block.rows; ++query) {
      if (head.segments[segment].end_query == block.first_row + query) ++segment;
      float* const row = probabilities + query * sizes.score_stride;
      const int64_t vectors = HideFilling(head, sizes, head.segments[segment], row);
      Probabilities(row, vectors, gradients.log_sums[block.first_row + query]);
      DifferentiateSoftmax(row, vectors, to_scores + query * sizes.score_stride);
    }
    Pad(From(gradients.attended, block.first_row), block.rows, width, rows, padded_width);
    AddOverQueries(head, sizes, block, probabilities, rows, to_shared_values, to_values);
    Pad(From(head.queries, block.first_row), block.rows, width, rows, padded_width, head.query_scale);
    AddOverQueries(head, sizes, block, to_scores, rows, to_shared_keys, to_keys);
    SumOverKeys(head, sizes, block, to_scores, shared_keys, keys, rows);
    Unpad(rows, padded_width, block.rows, width, From(gradients.queries, block.first_row));
  }
  Unpad(to_keys, padded_width, head.rows, width, gradients.keys);
  Unpad(to_values, padded_width, head.rows, width, gradients.values);
  Unpad(to_shared_keys, padded_width, head.shared, width, gradients.shared_keys);
  Unpad(to_shared_values, padded_width, head.shared, width, gradients.shared_values);
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
