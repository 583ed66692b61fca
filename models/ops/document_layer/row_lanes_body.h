// Norms and GELU of blocks whose lanes are rows, [channels][kBlockRows], for document_layer_body.h.
#pragma once

#include <cstdint>

#include "models/ops/document_layer/document_layer.h"
#include "models/ops/rows/lanes_body.h"
#include "models/ops/rows/softmax_body.h"

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
        value = (value - means[v]) * squares[v] * gain + bias;
        Store(value, y + c * kBlockRows + lane + v * kLanes);
      }
    }
  });
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

void GeluRows(int64_t width, int64_t lanes, float* rows) {
  ForEachVectors(lanes, [&]<int kVectors>(int64_t lane) {
    for (int64_t c = 0; c < width; ++c) {
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Lanes x;
        Load(rows + c * kBlockRows + lane + v * kLanes, x);
        Gelu(x);
        Store(x, rows + c * kBlockRows + lane + v * kLanes);
      }
    }
  });
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
