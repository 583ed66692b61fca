// The bytes that the kernels of a language model's step load and store, and the work of its attention, by its plan.
#pragma once

#include <cstdint>

#include "tests/models/gpu/counts/recorder.h"

namespace longshort::models {

struct StepBytes {
  int64_t weights = 0;       // of products
  int64_t product_rows = 0;  // activations, into and out of products
  int64_t rows = 0;          // the same of other kernels
  int64_t cache = 0;         // keys and values that attention loads; rows that are written to pages
  int64_t distances = 0;     // position terms that attention loads; they stay in the L2 cache
  int64_t partial = 0;       // partial results of attention, written and read
  int64_t upload = 0;        // the plan
  int64_t download = 0;      // the logits
  int64_t seen_cache = 0;    // keys and values that the rows see: what a step must load, beside the weights
};

// The work of attention's thread blocks: 64 keys of one head at a time.
struct StepWork {
  int64_t single_blocks = 0;       // of AttendToBlocks
  int64_t tile_window_blocks = 0;  // of AttendFromTiles: keys of the window
  int64_t tile_vector_blocks = 0;  // the same: vectors of chunks
  double product_flops = 0;
};

struct StepCount {
  StepBytes bytes;
  StepWork work;
};

// REQUIRES: the numbers of the step are in the device's memory.
StepCount CountStep(const Nodes& step);

}  // namespace longshort::models
