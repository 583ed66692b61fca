// Causal long-short attention of whole segments for training, with its gradient. It equals
// AttendSegmentsByReference (models/ops/segment_attention/segment_attention.h) up to rounding.
//
// The queries of a chunk see the same compressed vectors, so they are one block: its scores stay in the cache. The
// forward pass stores one number per query for the gradient, which recomputes the probabilities.
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

struct SegmentShape {
  int64_t tokens = 0;          // T, of whole segments
  int64_t segment_length = 0;  // L, of whole chunks
  int64_t chunk_size = 0;      // C
  int64_t rank = 0;            // R
  int64_t window = 0;          // W
  int64_t past = 0;            // compressed vectors of the memory before each segment

  int64_t vectors() const { return tokens / chunk_size * rank; }
  // The most vectors that a query sees.
  int64_t distances() const { return past + (segment_length / chunk_size - 1) * rank; }
};

// One head of one stream.
struct SegmentHead {
  int64_t head_width = 0;
  SegmentShape shape;
  HeadRows<const float> queries;                                 // [T], scaled
  HeadRows<const float> window_keys, window_values;              // [W-1+T]
  HeadRows<const float> memory_keys, memory_values;              // [past + vectors]: as later segments see them
  HeadRows<const float> segment_keys, segment_values;            // [vectors]: as the chunk's own segment sees them
  HeadRows<const float> window_positions;                        // [W], by distance
  HeadRows<const float> chunk_positions;                         // [distances], by distance
  const float *window_bias = nullptr, *relative_bias = nullptr;  // [head_width]
};

struct SegmentOutput {
  HeadRows<float> attended;   // [T], written
  float* log_sums = nullptr;  // [T], written: log of the sum of e^score over the keys that each query sees
};

// The gradients of the head's parts.
struct SegmentGradient {
  HeadRows<const float> attended;
  const float* log_sums = nullptr;  // from AttendSegments
  // Written.
  HeadRows<float> queries, window_keys, window_values, memory_keys, memory_values, segment_keys, segment_values;
  // Added to.
  HeadRows<float> window_positions, chunk_positions;
  float *window_bias = nullptr, *relative_bias = nullptr;
};

// Size of a call's `scratch`, in floats.
int64_t AttendSegmentsScratchFloats(const SegmentHead& head);
int64_t SegmentGradientScratchFloats(const SegmentHead& head);

void AttendSegments(const SegmentHead& head, const SegmentOutput& output, float* scratch,
                    InstructionSet set = BestInstructionSet());
void DifferentiateSegments(const SegmentHead& head, const SegmentGradient& gradient, float* scratch,
                           InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
