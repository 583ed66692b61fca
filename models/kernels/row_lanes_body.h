// Norms, softmaxes and GELU of blocks whose lanes are rows, [channels][kBlockRows], for document_layer_body.h.
#pragma once

#include <cstdint>

#include "models/kernels/document_layer.h"
#include "models/kernels/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// 1 / sqrt(x / width + epsilon) of each lane.
LS_INLINE Lanes InverseDeviation(const Lanes& squares, float width, float epsilon) {
  float lanes[kLanes];
  Store(squares, lanes);
  for (float& lane : lanes) lane = 1.0f / __builtin_sqrtf(lane / width + epsilon);
  Lanes inverse;
  Load(lanes, inverse);
  return inverse;
}

// Calls work for 4 vectors of lanes at once, whose sums do not wait for each other, then for single ones.
template <typename Work>
LS_INLINE void ForEachVectors(int64_t lanes, const Work& work) {
  int64_t lane = 0;
  for (; lane + 4 * kLanes <= lanes; lane += 4 * kLanes) work.template operator()<4>(lane);
  for (; lane < lanes; lane += kLanes) work.template operator()<1>(lane);
}

// y = norm(x), where y may be x.
void NormalizeRows(const RowNorm& norm, int64_t width, int64_t lanes, const float* x, float* y) {
  ForEachVectors(lanes, [&]<int kVectors>(int64_t lane) {
    Lanes means[kVectors], squares[kVectors], value;
    for (int v = 0; v < kVectors; ++v) means[v] = squares[v] = Lanes{};
    for (int64_t c = 0; c < width; ++c) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(x + c * kBlockRows + lane + v * kLanes, value);
        means[v] += value;
      }
    }
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) means[v] = means[v] * (1.0f / static_cast<float>(width));
    for (int64_t c = 0; c < width; ++c) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(x + c * kBlockRows + lane + v * kLanes, value);
        value = value - means[v];
        squares[v] += value * value;
      }
    }
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v)
      squares[v] = InverseDeviation(squares[v], static_cast<float>(width), norm.epsilon);
    for (int64_t c = 0; c < width; ++c) {
      const float gain = norm.gain[c], bias = norm.bias[c];
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(x + c * kBlockRows + lane + v * kLanes, value);
        value = (value - means[v]) * squares[v] * gain - (-bias);
        Store(value, y + c * kBlockRows + lane + v * kLanes);
      }
    }
  });
}

// The same for one row, [width]. Without a norm a copy.
void NormalizeRow(const RowNorm& norm, int64_t width, const float* x, float* y) {
  if (norm.gain == nullptr) {
    for (int64_t c = 0; c < width; ++c) y[c] = x[c];
    return;
  }
  float sum = 0, squares = 0;
  for (int64_t c = 0; c < width; ++c) sum += x[c];
  const float mean = sum / static_cast<float>(width);
  for (int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
  const float scale = 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + norm.epsilon);
  for (int64_t c = 0; c < width; ++c) y[c] = (x[c] - mean) * scale * norm.gain[c] + norm.bias[c];
}

void ScaleRows(int64_t width, int64_t lanes, float scale, float* x) {
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t lane = 0; lane < lanes; lane += kLanes) {
      Lanes value;
      Load(x + c * kBlockRows + lane, value);
      value = value * scale;
      Store(value, x + c * kBlockRows + lane);
    }
  }
}

// Replaces the scores [count][kBlockRows] by e^(score - maximum of the lane), and writes their sums. Every lane has a
// score above minus infinity.
void ExponentialsOfColumns(int64_t count, int64_t lanes, float* scores, float* sums) {
  ForEachVectors(lanes, [&]<int kVectors>(int64_t lane) {
    Lanes maxima[kVectors], all[kVectors], x;
    for (int v = 0; v < kVectors; ++v) {
      Load(scores + lane + v * kLanes, maxima[v]);
      all[v] = Lanes{};
    }
    for (int64_t i = 1; i < count; ++i) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(scores + i * kBlockRows + lane + v * kLanes, x);
        maxima[v] = Larger(x, maxima[v]);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Load(scores + i * kBlockRows + lane + v * kLanes, x);
        x = x - maxima[v];
        Exponential(x);
        Store(x, scores + i * kBlockRows + lane + v * kLanes);
        all[v] += x;
      }
    }
    for (int v = 0; v < kVectors; ++v) Store(all[v], sums + lane + v * kLanes);
  });
}

void DivideColumns(int64_t width, int64_t lanes, const float* sums, float* x) {
  for (int64_t lane = 0; lane < lanes; lane += kLanes) {
    Lanes scale, value;
    Load(sums + lane, scale);
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) scale.part[p] = 1.0f / scale.part[p];
    for (int64_t c = 0; c < width; ++c) {
      Load(x + c * kBlockRows + lane, value);
      value = value * scale;
      Store(value, x + c * kBlockRows + lane);
    }
  }
}

void GeluRows(int64_t width, int64_t lanes, float* rows) {
  ForEachVectors(lanes, [&]<int kVectors>(int64_t lane) {
    for (int64_t c = 0; c < width; ++c) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Lanes x;
        Load(rows + c * kBlockRows + lane + v * kLanes, x);
        LS_UNROLL
        for (int64_t p = 0; p < kParts; ++p) Gelu(x.part[p]);
        Store(x, rows + c * kBlockRows + lane + v * kLanes);
      }
    }
  });
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
