// The body of grid_attention.h, compiled once for each instruction set (row_products_body.h).
//
// For each segment, the keys that its queries see are gathered as columns and the values as rows, behind those of the
// shared vectors. So a segment has one product for its scores and one for its results.
#pragma once

#include <cstdint>

#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/padded_rows_body.h"
#include "models/ops/rows/softmax_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Positions begin .. end - 1 along an axis.
struct Span {
  int64_t begin = 0, end = 0;

  int64_t count() const { return end - begin; }
};

Span Clipped(int64_t begin, int64_t end, int64_t length) { return {Max(begin, 0), Min(end, length)}; }

// The sizes of a call's buffers, in floats.
struct GridSizes {
  int64_t padded_width = 0;  // of rows of values
  int64_t max_keys = 0;      // of a segment, with the shared vectors
  int64_t score_stride = 0;  // of a query's scores, and of the keys' channels
  int64_t band_stride = 0;   // of the channels of a band's keys
};

GridSizes GridSizesOf(const GridHead& head) {
  const int64_t visible = head.side + 2 * head.margin;
  const int64_t rows = Min(visible, head.height), columns = Min(visible, head.width);
  const int64_t max_keys = head.shared + rows * columns;
  return {.padded_width = PaddedHeadWidth(head.head_width),
          .max_keys = max_keys,
          .score_stride = SpreadStride(max_keys),
          .band_stride = SpreadStride(rows * head.width)};
}

// A segment's queries, and the tokens that they see.
struct Segment {
  Span query_rows, query_columns;
  Span key_rows, key_columns;
};

// The biases of a segment's scores: 0 for shared vectors, then the window's keys, and up to a vector more.
void BeginScores(const GridHead& head, const Segment& segment, int64_t first_row, int64_t first_column,
                 int64_t score_stride, float* scores) {
  const int64_t visible = head.side + 2 * head.margin, columns = segment.key_columns.count();
  const int64_t top = segment.key_rows.begin - (first_row - head.margin);
  const int64_t left = segment.key_columns.begin - (first_column - head.margin);
  for (int64_t y = 0; y < segment.query_rows.count(); ++y) {
    for (int64_t x = 0; x < segment.query_columns.count(); ++x) {
      const float* const of_query = head.bias + (y * head.side + x) * visible * visible + top * visible + left;
      Fill(scores, head.shared, 0.0f);
      // The key's rows in order, each beyond the end of the one before.
      for (int64_t key_row = 0; key_row < segment.key_rows.count(); ++key_row)
        CopyRun(of_query + key_row * visible, columns, scores + head.shared + key_row * columns);
      scores += score_stride;
    }
  }
}

}  // namespace

int64_t AttendGridScratchFloats(const GridHead& head) {
  const GridSizes sizes = GridSizesOf(head);
  const int64_t queries = head.side * head.side;
  return head.head_width * (sizes.band_stride + sizes.score_stride + queries) + sizes.max_keys * sizes.padded_width +
         queries * (sizes.score_stride + sizes.padded_width + 1);
}

void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch) {
  const GridSizes sizes = GridSizesOf(head);
  const int64_t width = head.head_width, padded_width = sizes.padded_width, stride = sizes.score_stride;
  const int64_t max_queries = head.side * head.side;
  float* const band_keys = Take(scratch, width * sizes.band_stride);  // [width][band_stride]
  float* const keys = Take(scratch, width * stride);                  // [width][stride]
  float* const values = Take(scratch, sizes.max_keys * padded_width);
  float* const queries = Take(scratch, max_queries * width);
  float* const scores = Take(scratch, max_queries * stride);
  float* const results = Take(scratch, max_queries * padded_width);
  float* const sums = Take(scratch, max_queries);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(width));

  const int64_t first_row = band * head.side;
  Segment segment;
  segment.query_rows = Clipped(first_row, first_row + head.side, head.height);
  segment.key_rows = Clipped(first_row - head.margin, first_row + head.side + head.margin, head.height);
  const int64_t key_rows = segment.key_rows.count();
  Transpose(From(head.keys, segment.key_rows.begin * head.width), key_rows * head.width, width, band_keys,
            sizes.band_stride);
  Transpose(head.shared_keys, head.shared, width, keys, stride);
  Pad(head.shared_values, head.shared, width, values, padded_width);

  for (int64_t first_column = 0; first_column < head.width; first_column += head.side) {
    segment.query_columns = Clipped(first_column, first_column + head.side, head.width);
    segment.key_columns = Clipped(first_column - head.margin, first_column + head.side + head.margin, head.width);
    const int64_t columns = segment.key_columns.count(), all_keys = head.shared + key_rows * columns;
    // The rows in order, each beyond the end of the one before.
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t row = 0; row < key_rows; ++row) {
        CopyRun(band_keys + c * sizes.band_stride + row * head.width + segment.key_columns.begin, columns,
                keys + c * stride + head.shared + row * columns);
      }
    }
    for (int64_t row = 0; row < key_rows; ++row) {
      Pad(From(head.values, (segment.key_rows.begin + row) * head.width + segment.key_columns.begin), columns, width,
          values + (head.shared + row * columns) * padded_width, padded_width);
    }
    int64_t count = 0;
    for (int64_t y = segment.query_rows.begin; y < segment.query_rows.end; ++y) {
      for (int64_t x = segment.query_columns.begin; x < segment.query_columns.end; ++x, ++count) {
        const float* const from = head.queries.data + (y * head.width + x) * head.queries.stride;
        for (int64_t c = 0; c < width; ++c) queries[count * width + c] = from[c] * scale;
      }
    }

    const int64_t padded_keys = PaddedHeadWidth(all_keys);
    if (head.bias == nullptr) {
      Multiply<false>(count, width, padded_keys, {queries, width}, keys, stride, scores, stride);
    } else {
      BeginScores(head, segment, first_row, first_column, stride, scores);
      Multiply<true>(count, width, padded_keys, {queries, width}, keys, stride, scores, stride);
    }
    for (int64_t i = 0; i < count; ++i) {
      Fill(scores + i * stride + all_keys, padded_keys - all_keys, -__builtin_inff());
      sums[i] = Exponentials(scores + i * stride, padded_keys / kLanes).sum;
    }
    Multiply<false>(count, all_keys, padded_width, {scores, stride}, values, padded_width, results, padded_width);

    for (int64_t y = segment.query_rows.begin, i = 0; y < segment.query_rows.end; ++y) {
      const int64_t columns_of_row = segment.query_columns.count();
      UnpadDivided(results + i * padded_width, padded_width, columns_of_row, width, sums + i,
                   From(attended, y * head.width + segment.query_columns.begin));
      i += columns_of_row;
    }
  }
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
