// The body of segment_attention.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/padded_rows_body.h"
#include "models/ops/rows/softmax_body.h"
#include "models/ops/segment_attention/segment_attention_kernels.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// The sizes of a call's buffers, in floats.
//
// The scores of a query are those of the window's keys of its block, W-1+C of them, and then those of the vectors. Row
// i of a block sees the window's columns i .. i+W-1. So its relative scores, one for each distance from the oldest on,
// begin at column i: they are rows of `score_stride` + 1 numbers.
struct SegmentSizes {
  explicit SegmentSizes(const SegmentHead& head)
      : width(head.head_width),
        padded_width(PaddedHeadWidth(width)),
        distance_columns(PaddedHeadWidth(head.shape.window)),
        window_columns(PaddedHeadWidth(head.shape.chunk_size + distance_columns)),
        score_stride(window_columns + PaddedHeadWidth(head.shape.distances())),
        row_columns(SpreadStride(head.shape.tokens + window_columns)),
        vector_columns(SpreadStride(head.shape.past + head.shape.vectors())),
        position_columns(SpreadStride(head.shape.distances())) {}

  int64_t width, padded_width;
  int64_t distance_columns, window_columns, score_stride;
  // Columns of rows, of vectors, and of positions or vectors that one block sees.
  int64_t row_columns, vector_columns, position_columns;
};

// The queries of one chunk.
struct SegmentBlock {
  SegmentBlock(const SegmentShape& shape, int64_t chunk)
      : first_row(chunk * shape.chunk_size),
        first_vector(first_row / shape.segment_length * (shape.segment_length / shape.chunk_size) * shape.rank),
        own(chunk * shape.rank - first_vector),
        seen(shape.past + own),
        first_position(shape.distances() - seen) {}

  int64_t first_row;       // and the first of its window's rows
  int64_t first_vector;    // of the memory that it sees, and of its segment's vectors
  int64_t own;             // vectors that it sees of its segment
  int64_t seen;            // the memory's, then its segment's
  int64_t first_position;  // of those from the oldest on
};

// The rows of a matrix in reverse order. Of none, the data may be null.
template <typename Number>
HeadRows<Number> Reversed(const HeadRows<Number>& rows, int64_t count) {
  if (count == 0) return rows;
  return {rows.data + (count - 1) * rows.stride, -rows.stride};
}

// to = a (+ b, if any), kLanes at a time: up to a vector more is read and written.
void AddRuns(const float* a, const float* b, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Lanes x, y{};
    Load(a + i, x);
    if (b != nullptr) Load(b + i, y);
    x += y;
    Store(x, to + i);
  }
}

// The vectors that a block sees, as columns [width][position_columns]: the memory's, then its segment's, both of
// [width][vector_columns], plus `positions` [width][position_columns] or null.
void VectorColumns(const SegmentHead& head, const SegmentSizes& sizes, const SegmentBlock& block, const float* memory,
                   const float* segment, const float* positions, float* to) {
  for (int64_t c = 0; c < sizes.width; ++c) {
    const int64_t vector = c * sizes.vector_columns + block.first_vector, column = c * sizes.position_columns;
    const float* const position = positions == nullptr ? nullptr : positions + column + block.first_position;
    AddRuns(memory + vector, position, head.shape.past, to + column);
    AddRuns(segment + vector, position == nullptr ? nullptr : position + head.shape.past, block.own,
            to + column + head.shape.past);
  }
}

// Rows of queries of a block, [C][padded_width]: as they meet vectors, window keys and window positions.
struct SegmentQueries {
  float *plain, *to_keys, *to_positions;

  SegmentQueries(const SegmentHead& head, const SegmentSizes& sizes, float*& scratch)
      : plain(Take(scratch, head.shape.chunk_size * sizes.padded_width)),
        to_keys(Take(scratch, head.shape.chunk_size * sizes.padded_width)),
        to_positions(Take(scratch, head.shape.chunk_size * sizes.padded_width)) {}

  void Read(const SegmentHead& head, const SegmentSizes& sizes, const SegmentBlock& block) const {
    Pad(From(head.queries, block.first_row), head.shape.chunk_size, sizes.width, plain, sizes.padded_width);
    for (int64_t i = 0; i < head.shape.chunk_size; ++i) {
      const int64_t row = i * sizes.padded_width;
      for (int64_t c = 0; c < sizes.width; ++c) to_keys[row + c] = plain[row + c] + head.window_bias[c];
      for (int64_t c = 0; c < sizes.width; ++c) to_positions[row + c] = plain[row + c] + head.relative_bias[c];
      for (int64_t c = sizes.width; c < sizes.padded_width; ++c) to_keys[row + c] = to_positions[row + c] = 0;
    }
  }
};

// Sets the numbers of what a query of the block does not see, and of padding.
void Hide(const SegmentHead& head, const SegmentSizes& sizes, const SegmentBlock& block, float value, float* scores) {
  for (int64_t i = 0; i < head.shape.chunk_size; ++i) {
    float* const row = scores + i * sizes.score_stride;
    Fill(row, i, value);
    Fill(row + i + head.shape.window, sizes.window_columns - i - head.shape.window, value);
    Fill(row + sizes.window_columns + block.seen, PaddedHeadWidth(block.seen) - block.seen, value);
  }
}

// The keys as columns: what scores are made of.
struct KeyColumns {
  float *window, *memory, *segment, *distances, *positions, *seen;

  KeyColumns(const SegmentHead& head, const SegmentSizes& sizes, float*& scratch)
      : window(Take(scratch, sizes.width * sizes.row_columns)),
        memory(Take(scratch, sizes.width * sizes.vector_columns)),
        segment(Take(scratch, sizes.width * sizes.vector_columns)),
        distances(Take(scratch, sizes.width * sizes.distance_columns)),
        positions(Take(scratch, sizes.width * sizes.position_columns)),
        seen(Take(scratch, sizes.width * sizes.position_columns)) {
    const SegmentShape& shape = head.shape;
    Transpose(head.window_keys, shape.window - 1 + shape.tokens, sizes.width, window, sizes.row_columns);
    Transpose(head.memory_keys, shape.past + shape.vectors(), sizes.width, memory, sizes.vector_columns);
    Transpose(head.segment_keys, shape.vectors(), sizes.width, segment, sizes.vector_columns);
    Transpose(Reversed(head.window_positions, shape.window), shape.window, sizes.width, distances,
              sizes.distance_columns);
    Transpose(Reversed(head.chunk_positions, shape.distances()), shape.distances(), sizes.width, positions,
              sizes.position_columns);
  }
  static int64_t Floats(const SegmentSizes& sizes) {
    return sizes.width *
           (sizes.row_columns + 2 * sizes.vector_columns + sizes.distance_columns + 2 * sizes.position_columns);
  }

  // The scores of a block.
  void Scores(const SegmentHead& head, const SegmentSizes& sizes, const SegmentBlock& block,
              const SegmentQueries& queries, float* scores) const {
    const int64_t rows = head.shape.chunk_size, stride = sizes.score_stride;
    Multiply<false>(rows, sizes.width, sizes.window_columns, {queries.to_keys, sizes.padded_width},
                    window + block.first_row, sizes.row_columns, scores, stride);
    Multiply<true>(rows, sizes.width, sizes.distance_columns, {queries.to_positions, sizes.padded_width}, distances,
                   sizes.distance_columns, scores, stride + 1);
    VectorColumns(head, sizes, block, memory, segment, positions, seen);
    const int64_t columns = PaddedHeadWidth(block.seen);
    Multiply<false>(rows, sizes.width, columns, {queries.plain, sizes.padded_width}, seen, sizes.position_columns,
                    scores + sizes.window_columns, stride);
    Hide(head, sizes, block, -__builtin_inff(), scores);
  }
};

// Rows of keys, values, or gradients of either, [..][padded_width].
struct SegmentRows {
  float *window, *memory, *segment;

  SegmentRows(const SegmentHead& head, const SegmentSizes& sizes, float*& scratch)
      : window(Take(scratch, (head.shape.window - 1 + head.shape.tokens) * sizes.padded_width)),
        memory(Take(scratch, (head.shape.past + head.shape.vectors()) * sizes.padded_width)),
        segment(Take(scratch, head.shape.vectors() * sizes.padded_width)) {}
  static int64_t Floats(const SegmentHead& head, const SegmentSizes& sizes) {
    return (head.shape.window - 1 + head.shape.tokens + head.shape.past + 2 * head.shape.vectors()) *
           sizes.padded_width;
  }

  void Read(const SegmentHead& head, const SegmentSizes& sizes, const HeadRows<const float>& of_window,
            const HeadRows<const float>& of_memory, const HeadRows<const float>& of_segment) const {
    const SegmentShape& shape = head.shape;
    Pad(of_window, shape.window - 1 + shape.tokens, sizes.width, window, sizes.padded_width);
    Pad(of_memory, shape.past + shape.vectors(), sizes.width, memory, sizes.padded_width);
    Pad(of_segment, shape.vectors(), sizes.width, segment, sizes.padded_width);
  }
  void Write(const SegmentHead& head, const SegmentSizes& sizes, const HeadRows<float>& of_window,
             const HeadRows<float>& of_memory, const HeadRows<float>& of_segment) const {
    const SegmentShape& shape = head.shape;
    Unpad(window, sizes.padded_width, shape.window - 1 + shape.tokens, sizes.width, of_window);
    Unpad(memory, sizes.padded_width, shape.past + shape.vectors(), sizes.width, of_memory);
    Unpad(segment, sizes.padded_width, shape.vectors(), sizes.width, of_segment);
  }
};

// Adds rows of padded_width floats to those of a head.
void AddTo(const float* from, const SegmentSizes& sizes, int64_t count, const HeadRows<float>& rows) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < sizes.width; ++c) rows.data[i * rows.stride + c] += from[i * sizes.padded_width + c];
  }
}

// Adds the sum of rows.
void AddSum(const float* rows, const SegmentSizes& sizes, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < sizes.width; ++c) to[c] += rows[i * sizes.padded_width + c];
  }
}

int64_t BlockFloats(const SegmentHead& head, const SegmentSizes& sizes, int64_t rows, int64_t scores) {
  return head.shape.chunk_size * (rows * sizes.padded_width + scores * sizes.score_stride);
}

}  // namespace

int64_t AttendSegmentsScratchFloats(const SegmentHead& head) {
  const SegmentSizes sizes(head);
  return KeyColumns::Floats(sizes) + SegmentRows::Floats(head, sizes) + BlockFloats(head, sizes, 4, 1);
}

void AttendSegments(const SegmentHead& head, const SegmentOutput& output, float* scratch) {
  const SegmentSizes sizes(head);
  const SegmentShape& shape = head.shape;
  const int64_t rows = shape.chunk_size, padded = sizes.padded_width, stride = sizes.score_stride;
  const KeyColumns keys(head, sizes, scratch);
  const SegmentRows values(head, sizes, scratch);
  values.Read(head, sizes, head.window_values, head.memory_values, head.segment_values);
  const SegmentQueries queries(head, sizes, scratch);
  float* const attended = Take(scratch, rows * padded);
  float* const scores = scratch;

  for (int64_t chunk = 0; chunk < shape.tokens / rows; ++chunk) {
    const SegmentBlock block(shape, chunk);
    queries.Read(head, sizes, block);
    keys.Scores(head, sizes, block, queries, scores);
    float* const sums = queries.plain;  // not needed any more
    for (int64_t i = 0; i < rows; ++i) {
      const ExponentialSum of_row =
          Exponentials(scores + i * stride, (sizes.window_columns + PaddedHeadWidth(block.seen)) / kLanes);
      sums[i] = of_row.sum;
      output.log_sums[block.first_row + i] = of_row.maximum + __builtin_logf(of_row.sum);
    }
    // Numbers as small as those of hidden scores would be slow.
    Hide(head, sizes, block, 0, scores);
    const float* const of_vectors = scores + sizes.window_columns;
    Multiply<false>(rows, shape.window - 1 + rows, padded, {scores, stride}, values.window + block.first_row * padded,
                    padded, attended, padded);
    Multiply<true>(rows, shape.past, padded, {of_vectors, stride}, values.memory + block.first_vector * padded, padded,
                   attended, padded);
    Multiply<true>(rows, block.own, padded, {of_vectors + shape.past, stride},
                   values.segment + block.first_vector * padded, padded, attended, padded);
    UnpadDivided(attended, padded, rows, sizes.width, sums, From(output.attended, block.first_row));
  }
}

int64_t SegmentGradientScratchFloats(const SegmentHead& head) {
  const SegmentSizes sizes(head);
  return KeyColumns::Floats(sizes) +
         sizes.width * (sizes.row_columns + 2 * sizes.vector_columns + sizes.position_columns) +
         3 * SegmentRows::Floats(head, sizes) +
         (2 * head.shape.window + 4 * head.shape.distances()) * sizes.padded_width + BlockFloats(head, sizes, 7, 2);
}

void DifferentiateSegments(const SegmentHead& head, const SegmentGradient& gradient, float* scratch) {
  const SegmentSizes sizes(head);
  const SegmentShape& shape = head.shape;
  const int64_t rows = shape.chunk_size, padded = sizes.padded_width, stride = sizes.score_stride;
  const int64_t window_rows = shape.window - 1 + rows, distances = shape.distances();
  const KeyColumns key_columns(head, sizes, scratch);
  float* const value_columns = Take(scratch, sizes.width * sizes.row_columns);
  float* const memory_columns = Take(scratch, sizes.width * sizes.vector_columns);
  float* const segment_columns = Take(scratch, sizes.width * sizes.vector_columns);
  float* const seen_columns = Take(scratch, sizes.width * sizes.position_columns);
  Transpose(head.window_values, shape.window - 1 + shape.tokens, sizes.width, value_columns, sizes.row_columns);
  Transpose(head.memory_values, shape.past + shape.vectors(), sizes.width, memory_columns, sizes.vector_columns);
  Transpose(head.segment_values, shape.vectors(), sizes.width, segment_columns, sizes.vector_columns);
  const SegmentRows keys(head, sizes, scratch);
  keys.Read(head, sizes, head.window_keys, head.memory_keys, head.segment_keys);
  float* const window_positions = Take(scratch, shape.window * padded);
  float* const positions = Take(scratch, distances * padded);
  Pad(Reversed(head.window_positions, shape.window), shape.window, sizes.width, window_positions, padded);
  Pad(Reversed(head.chunk_positions, distances), distances, sizes.width, positions, padded);
  // Gradients, summed block by block.
  float* const sums = scratch;
  const SegmentRows to_keys(head, sizes, scratch), to_values(head, sizes, scratch);
  float* const to_window_positions = Take(scratch, shape.window * padded);
  float* const to_positions = Take(scratch, distances * padded);
  Fill(sums, scratch - sums, 0.0f);
  const SegmentQueries queries(head, sizes, scratch);
  float* const seen = Take(scratch, distances * padded);
  float* const to_seen = Take(scratch, distances * padded);
  float* const attended = Take(scratch, rows * padded);
  float* const by_keys = Take(scratch, rows * padded);
  float* const by_positions = Take(scratch, rows * padded);
  float* const by_vectors = Take(scratch, rows * padded);
  float* const probabilities = Take(scratch, rows * stride);
  float* const to_scores = scratch;

  for (int64_t chunk = 0; chunk < shape.tokens / rows; ++chunk) {
    const SegmentBlock block(shape, chunk);
    const int64_t columns = PaddedHeadWidth(block.seen), vectors = (sizes.window_columns + columns) / kLanes;
    const int64_t row = block.first_row * padded, vector = block.first_vector * padded;
    queries.Read(head, sizes, block);
    Pad(From(gradient.attended, block.first_row), rows, sizes.width, attended, padded);
    key_columns.Scores(head, sizes, block, queries, probabilities);
    Multiply<false>(rows, sizes.width, sizes.window_columns, {attended, padded}, value_columns + block.first_row,
                    sizes.row_columns, to_scores, stride);
    VectorColumns(head, sizes, block, memory_columns, segment_columns, nullptr, seen_columns);
    Multiply<false>(rows, sizes.width, columns, {attended, padded}, seen_columns, sizes.position_columns,
                    to_scores + sizes.window_columns, stride);
    for (int64_t i = 0; i < rows; ++i) {
      Probabilities(probabilities + i * stride, vectors, gradient.log_sums[block.first_row + i]);
    }
    // Numbers as small as those of hidden scores would be slow, and padding has any numbers.
    Hide(head, sizes, block, 0, probabilities);
    Hide(head, sizes, block, 0, to_scores);
    for (int64_t i = 0; i < rows; ++i) {
      DifferentiateSoftmax(probabilities + i * stride, vectors, to_scores + i * stride);
    }

    const auto by_column = [stride](const float* scores) { return Left{scores, 1, stride}; };
    const float *const of_vectors = probabilities + sizes.window_columns, *const to_vectors =
                                                                              to_scores + sizes.window_columns;
    Multiply<true>(window_rows, rows, padded, by_column(probabilities), attended, padded, to_values.window + row,
                   padded);
    Multiply<true>(shape.past, rows, padded, by_column(of_vectors), attended, padded, to_values.memory + vector,
                   padded);
    Multiply<true>(block.own, rows, padded, by_column(of_vectors + shape.past), attended, padded,
                   to_values.segment + vector, padded);

    Multiply<true>(window_rows, rows, padded, by_column(to_scores), queries.to_keys, padded, to_keys.window + row,
                   padded);
    Multiply<true>(shape.window, rows, padded, {to_scores, 1, stride + 1}, queries.to_positions, padded,
                   to_window_positions, padded);
    Multiply<false>(block.seen, rows, padded, by_column(to_vectors), queries.plain, padded, to_seen, padded);
    const int64_t past = shape.past * padded, own = block.own * padded, position = block.first_position * padded;
    AddRuns(to_keys.memory + vector, to_seen, past, to_keys.memory + vector);
    AddRuns(to_keys.segment + vector, to_seen + past, own, to_keys.segment + vector);
    AddRuns(to_positions + position, to_seen, past + own, to_positions + position);

    AddRuns(keys.memory + vector, positions + position, past, seen);
    AddRuns(keys.segment + vector, positions + position + past, own, seen + past);
    Multiply<false>(rows, window_rows, padded, {to_scores, stride}, keys.window + row, padded, by_keys, padded);
    Multiply<false>(rows, shape.window, padded, {to_scores, stride + 1}, window_positions, padded, by_positions,
                    padded);
    Multiply<false>(rows, block.seen, padded, {to_vectors, stride}, seen, padded, by_vectors, padded);
    AddSum(by_keys, sizes, rows, gradient.window_bias);
    AddSum(by_positions, sizes, rows, gradient.relative_bias);
    AddRuns(by_keys, by_positions, rows * padded, by_keys);
    AddRuns(by_keys, by_vectors, rows * padded, by_keys);
    Unpad(by_keys, padded, rows, sizes.width, From(gradient.queries, block.first_row));
  }
  to_keys.Write(head, sizes, gradient.window_keys, gradient.memory_keys, gradient.segment_keys);
  to_values.Write(head, sizes, gradient.window_values, gradient.memory_values, gradient.segment_values);
  AddTo(to_window_positions, sizes, shape.window, Reversed(gradient.window_positions, shape.window));
  AddTo(to_positions, sizes, distances, Reversed(gradient.chunk_positions, distances));
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
