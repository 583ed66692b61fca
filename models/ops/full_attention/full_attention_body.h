// The body of full_attention.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/full_attention/full_attention_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/padded_rows_body.h"
#include "models/ops/rows/softmax_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// The biases of one query's scores: [tokens], and up to a vector more.
void BeginScores(const FullHead& head, int64_t query, float* scores) {
  const int64_t tokens = head.tokens, side = head.side;
  if (head.patch_bias == nullptr) return Fill(scores, tokens, 0.0f);
  if (query < head.globals) {
    for (int64_t key = 0; key < head.globals; ++key) scores[key] = head.between_globals[query * head.globals + key];
    return Fill(scores + head.globals, tokens - head.globals, head.to_patches[query]);
  }
  for (int64_t key = 0; key < head.globals; ++key) scores[key] = head.to_globals[key];
  const int64_t row = (query - head.globals) / side, column = (query - head.globals) % side, offsets = 2 * side - 1;
  // The key's rows in order, each beyond the end of the one before.
  for (int64_t key_row = 0; key_row < side; ++key_row) {
    CopyRun(head.patch_bias + (key_row - row + side - 1) * offsets + side - 1 - column, side,
            scores + head.globals + key_row * side);
  }
}

}  // namespace

void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch) {
  const int64_t tokens = head.tokens, width = head.head_width, padded_width = PaddedHeadWidth(width);
  const int64_t padded_tokens = PaddedHeadWidth(tokens), stride = SpreadStride(tokens);
  float* const keys = Take(scratch, width * stride);  // [width][stride]
  float* const values = Take(scratch, tokens * padded_width);
  float* const queries = Take(scratch, kFullQueries * width);
  float* const scores = Take(scratch, kFullQueries * stride);
  float* const results = Take(scratch, kFullQueries * padded_width);
  float sums[kFullQueries];
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(width));
  Transpose(head.keys, tokens, width, keys, stride);
  Pad(head.values, tokens, width, values, padded_width);

  for (int64_t first = 0; first < tokens; first += kFullQueries) {
    const int64_t count = Min(tokens - first, kFullQueries);
    for (int64_t i = 0; i < count; ++i) {
      const float* const query = head.queries.data + (first + i) * head.queries.stride;
      for (int64_t c = 0; c < width; ++c) queries[i * width + c] = query[c] * scale;
      BeginScores(head, first + i, scores + i * stride);
    }
    Multiply<true>(count, width, padded_tokens, {queries, width}, keys, stride, scores, stride);
    for (int64_t i = 0; i < count; ++i) {
      Fill(scores + i * stride + tokens, padded_tokens - tokens, -__builtin_inff());
      sums[i] = Exponentials(scores + i * stride, padded_tokens / kLanes).sum;
    }
    Multiply<false>(count, tokens, padded_width, {scores, stride}, values, padded_width, results, padded_width);
    UnpadDivided(results, padded_width, count, width, sums, From(attended, first));
  }
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
