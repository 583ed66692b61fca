// The softmax of a row of scores, for the bodies of attention kernels (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/kernels/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// What was subtracted from scores, and the sum of their exponentials.
struct ExponentialSum {
  float maximum = 0, sum = 0;
};

// Replaces the scores of one query by e^(score - the largest). There are `vectors` vectors of kLanes scores; padding is
// -infinity.
LS_INLINE ExponentialSum Exponentials(float* scores, int64_t vectors) {
  Lanes largest, x;
  Load(scores, largest);
  for (int64_t v = 1; v < vectors; ++v) {
    Load(scores + v * kLanes, x);
    largest = Larger(x, largest);
  }
  const float maximum = Maximum(largest);
  Lanes sums{};
  for (int64_t v = 0; v < vectors; ++v) {
    Load(scores + v * kLanes, x);
    x = x - maximum;
    Exponential(x);
    Store(x, scores + v * kLanes);
    sums += x;
  }
  return {maximum, Sum(sums)};
}

// The same by probabilities. Returns the log of the sum of e^score.
LS_INLINE float Softmax(float* scores, int64_t vectors) {
  const ExponentialSum of_row = Exponentials(scores, vectors);
  const float scale = 1.0f / of_row.sum;
  for (int64_t v = 0; v < vectors; ++v) {
    Lanes x;
    Load(scores + v * kLanes, x);
    x = x * scale;
    Store(x, scores + v * kLanes);
  }
  return of_row.maximum + __builtin_logf(of_row.sum);
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
