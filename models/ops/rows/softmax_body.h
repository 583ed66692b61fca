// Softmaxes of rows and of columns of scores, for the bodies of attention kernels (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/rows/lanes_body.h"

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

// Calls work for 4 vectors of lanes at once, whose sums do not wait for each other, then for single ones.
template <typename Work>
LS_INLINE void ForEachVectors(int64_t lanes, const Work& work) {
  int64_t lane = 0;
  for (; lane + 4 * kLanes <= lanes; lane += 4 * kLanes) work.template operator()<4>(lane);
  for (; lane < lanes; lane += kLanes) work.template operator()<1>(lane);
}

// Replaces the scores, in `count` rows that are `stride` floats apart, by e^(score - maximum of the lane), and writes
// their sums. Every lane has a score above minus infinity.
inline void ExponentialsOfColumns(int64_t count, int64_t lanes, int64_t stride, float* scores, float* sums) {
  ForEachVectors(lanes, [&]<int kVectors>(int64_t lane) {
    Lanes maxima[kVectors], all[kVectors], x;
    for (int v = 0; v < kVectors; ++v) {
      Load(scores + lane + v * kLanes, maxima[v]);
      all[v] = Lanes{};
    }
    for (int64_t i = 1; i < count; ++i) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(scores + i * stride + lane + v * kLanes, x);
        maxima[v] = Larger(x, maxima[v]);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(scores + i * stride + lane + v * kLanes, x);
        x = x - maxima[v];
        Exponential(x);
        Store(x, scores + i * stride + lane + v * kLanes);
        all[v] += x;
      }
    }
    for (int v = 0; v < kVectors; ++v) Store(all[v], sums + lane + v * kLanes);
  });
}

// Divides the numbers of each lane, in `count` rows, by its sum.
inline void DivideColumns(int64_t count, int64_t lanes, int64_t stride, const float* sums, float* x) {
  for (int64_t lane = 0; lane < lanes; lane += kLanes) {
    Lanes scale, value;
    Load(sums + lane, scale);
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) scale.part[p] = 1.0f / scale.part[p];
    for (int64_t c = 0; c < count; ++c) {
      Load(x + c * stride + lane, value);
      value = value * scale;
      Store(value, x + c * stride + lane);
    }
  }
}

}  // namespace

// The gradient of a softmax, for the bodies of kernels for training (row_products_body.h).

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
[[maybe_unused]] void DifferentiateSoftmax(const float* probabilities, int64_t vectors, float* gradients) {
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
