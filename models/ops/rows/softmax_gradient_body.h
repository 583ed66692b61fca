// The gradient of a softmax, for the bodies of kernels for training (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Recomputes the probabilities of one query from its scores and the stored log of the sum.
LS_INLINE void Probabilities(float* scores, int64_t vectors, float log_sum) {
  for (int64_t v = 0; v < vectors; ++v) {
    Lanes x;
    Load(scores + v * kLanes, x);
    x = Smaller(x - log_sum, 0.0f);
    Exponential(x);
    Store(x, scores + v * kLanes);
  }
}

// The gradient of a softmax: turns `gradients` of the probabilities into those of the scores.
void DifferentiateSoftmax(const float* probabilities, int64_t vectors, float* gradients) {
  Lanes sums{}, p, g;
  for (int64_t v = 0; v < vectors; ++v) {
    Load(probabilities + v * kLanes, p);
    Load(gradients + v * kLanes, g);
    sums += p * g;
  }
  const float mean = Sum(sums);
  for (int64_t v = 0; v < vectors; ++v) {
    Load(probabilities + v * kLanes, p);
    Load(gradients + v * kLanes, g);
    g = p * (g - mean);
    Store(g, gradients + v * kLanes);
  }
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
