// The kernels of bidirectional long-short attention over documents. They equal the reference op (document_attention.h)
// up to rounding.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/rows.h"

// For CPUs: one head of one document, and its gradient. Only pairs of a query and a key that it sees are computed. The
// forward pass stores one number per query for the gradient, which recomputes the probabilities.
namespace longshort::models::cpu {

struct DocumentHead {
  int64_t head_width = 0;
  int64_t rows = 0;                         // of queries, keys and values
  int64_t shared = 0;                       // vectors that every query sees
  const WindowSegment* segments = nullptr;  // each row is a query of one segment, in row order
  int64_t segment_count = 0;

  float query_scale = 0;  // of the queries: 1/sqrt(head_width)
  HeadRows<const float> queries;
  HeadRows<const float> keys, values;
  HeadRows<const float> shared_keys, shared_values;
};

struct DocumentOutput {
  HeadRows<float> attended;   // written
  float* log_sums = nullptr;  // [rows], written: log of the sum of e^score over the keys that each query sees
};

// Results of the forward pass, and the outputs of the gradient; all outputs are written.
struct DocumentGradients {
  HeadRows<const float> attended;
  const float* log_sums = nullptr;  // from AttendDocument
  HeadRows<float> queries;
  HeadRows<float> keys, values;
  HeadRows<float> shared_keys, shared_values;
};

// Size of a call's `scratch`, in floats.
int64_t AttendDocumentScratchFloats(const DocumentHead& head);
int64_t DocumentGradientScratchFloats(const DocumentHead& head);

// REQUIRES: every query sees at least one key; the processor supports `set`.
void AttendDocument(const DocumentHead& head, const DocumentOutput& output, float* scratch,
                    InstructionSet set = BestInstructionSet());
void DifferentiateDocument(const DocumentHead& head, const DocumentGradients& gradients, float* scratch,
                           InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu

// For GPUs: packed documents of any lengths, in one launch.
namespace longshort::models::cuda {

// Queries of one document that one thread block processes together (document_places_kernels.h).
struct DocumentTile {
  int64_t first_row, rows;  // 0 .. kTileRows
  int64_t first_key, keys;  // union of its rows' windows; may be empty
  int64_t document;         // its m shared vectors begin at row document * m
};
struct WindowRows {
  int64_t begin, end;  // rows that one row sees; the end is exclusive
};

struct DocumentAttention {
  RowAttention attention;
  const DocumentTile* tiles;  // [tile_count]
  int tile_count;
  const WindowRows* windows;  // [rows]
};
// REQUIRES: every row sees at least one key.
KernelCall DocumentAttentionCall(const DocumentAttention& arguments);

// Convolves values along the positions of their document, with separate taps for each head, and adds the result to
// rows. Equals the reference op ConvolveValues. With
// positions p and half = taps / 2:
//   sums_i += sum_j taps[p_j - p_i + half] values_j, over rows j of the document with |p_j - p_i| <= half
// Masked positions have no rows. A row's bits depend on its document only.
struct ValueConvolution {
  ElementType element;  // of all inputs and outputs; sums are float32, and rounded once
  int heads;
  int head_width;
  int kernel;                 // taps of a head, odd
  const void* taps;           // [heads, kernel]; the middle one applies to the row's own position
  const int64_t* positions;   // [rows], ascending within a document
  const ItemRows* documents;  // [documents]
  const DocumentTile* tiles;  // [tile_count]; only their rows are used
  int tile_count;

  Rows values;  // [rows, heads * head_width]
  Rows sums;    // [rows, heads * head_width], must not overlap `values`
};
KernelCall ValueConvolutionCall(const ValueConvolution& arguments);

}  // namespace longshort::models::cuda
