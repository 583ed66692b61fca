// Long-short attention of one head over one image's grid of tokens. It equals the reference op
// (models/ops/grid_attention/long_short_attention_2d.h) up to rounding. Only pairs of a query and a key that it sees
// are computed.
#pragma once

#include <cstdint>

#include "models/ops/rows/head_rows.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models::cpu {

// Tokens are row-major. The grid is split from the top left into segments of side x side tokens; those at the right and
// bottom edges may be smaller. A query sees its segment and `margin` more tokens on each of the four sides.
struct GridHead {
  int64_t head_width = 0;
  int64_t height = 0, width = 0;  // of the grid, in tokens
  int64_t side = 0, margin = 0;   // at least 1
  int64_t shared = 0;             // vectors that every query sees

  HeadRows<const float> queries;  // not scaled
  HeadRows<const float> keys, values;
  HeadRows<const float> shared_keys, shared_values;
  // Added to the scores of window keys; null: none. [side * side][(side + 2 * margin)^2], queries of a segment and keys
  // around it row-major. Behind the biases are kLanes more floats that may be read.
  const float* bias = nullptr;

  // Rows of segments.
  int64_t bands() const { return (height + side - 1) / side; }
};

// Size of a call's `scratch`, in floats.
int64_t AttendGridScratchFloats(const GridHead& head);

// Writes the rows of `attended` that belong to the queries of a band, from 0. REQUIRES: the processor supports `set`.
void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch,
                InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
