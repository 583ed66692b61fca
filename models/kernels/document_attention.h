// Bidirectional long-short attention of one head over one document, and its gradient: the drop-in for the reference op
// (models/attention/long_short_attention_1d.h), with the same result to rounding.
//
// Only pairs of a query and a key that it sees are worked on. Nothing is kept for the gradient but one number per
// query: probabilities are computed again.
#pragma once

#include <cstdint>

#include "models/kernels/instruction_set.h"
#include "models/kernels/window_segment.h"

namespace longshort::models::cpu {

// Rows of a matrix, of which one head's channels are meant: row i begins at data + i * stride.
template <typename Float>
struct HeadRows {
  Float* data = nullptr;
  int64_t stride = 0;
};

struct DocumentHead {
  int64_t head_width = 0;
  int64_t rows = 0;                         // of queries, keys and values
  int64_t shared = 0;                       // vectors that every query sees
  const WindowSegment* segments = nullptr;  // every row is a query of one, in the order of rows
  int64_t segment_count = 0;

  HeadRows<const float> queries;  // scaled by 1/sqrt(head_width)
  HeadRows<const float> keys, values;
  HeadRows<const float> shared_keys, shared_values;
};

struct DocumentOutput {
  HeadRows<float> attended;   // written
  float* log_sums = nullptr;  // [rows], written: log of the sum of e^score of what each query sees
};

// What comes back, and where the gradients go; all are written.
struct DocumentGradients {
  HeadRows<const float> attended;
  const float* log_sums = nullptr;  // as AttendDocument left them
  HeadRows<float> queries;
  HeadRows<float> keys, values;
  HeadRows<float> shared_keys, shared_values;
};

// Floats that a call needs for itself.
int64_t AttendDocumentScratchFloats(const DocumentHead& head);
int64_t DocumentGradientScratchFloats(const DocumentHead& head);

// REQUIRES: every query sees something; the processor has `set`.
void AttendDocument(const DocumentHead& head, const DocumentOutput& output, float* scratch,
                    InstructionSet set = BestInstructionSet());
void DifferentiateDocument(const DocumentHead& head, const DocumentGradients& gradients, float* scratch,
                           InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
