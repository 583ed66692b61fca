// A step for a GPU: its plan, and the kernel that each row's attention uses. Steps that run as graphs are padded, so
// that all steps of a shape have arrays of the same sizes at the same addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "models/device/gpu_device.h"
#include "models/device/gpu_memory.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/step_plan.h"
#include "models/ops/causal_attention/query_tiles.h"

namespace longshort::models {

struct GpuStep {
  StepPlan plan;  // its numbers include the arrays below
  StepPlan::Array single_rows;
  StepPlan::Array tiles;  // [tiles, 2]

  int64_t single_count() const { return single_rows.size; }
  int64_t tile_count() const { return tiles.size / 2; }
};

// Makes a step without padding. Copies the plan.
GpuStep MakeGpuStep(const StepPlan& plan);

// The padded size of a graph.
struct StepShape {
  int64_t rows = 0;
  int64_t full_chunks = 0;
  int64_t vectors = 0;      // of the full chunks
  int64_t page_ids = 0;     // of the three tables together
  int64_t single_rows = 0;  // rows that attend one by one: 0 if all attend in tiles
  int64_t tiles = 0;        // 0: no row attends in a tile
};

// The shapes of the captured graphs. A step runs as the first shape that fits it. There are four shapes for every
// bucket of rows up to `max_rows`:
//   single rows, no chunk ends;  single rows and ends of chunks;
//   tiles and ends of chunks;    tiles, ends of chunks, and up to half of the rows single, beside prompts
std::vector<StepShape> ShapesOfGraphs(const LanguageModelConfig& config, int64_t max_rows);

// A shape that any step of up to `rows` rows fits, except for its tiles.
StepShape LargestShape(const LanguageModelConfig& config, int64_t rows);

// The rows of a step that attend one by one, and those that attend in tiles.
class StepTiles final {
 public:
  explicit StepTiles(const StepPlan& plan);

  bool FitIn(const StepShape& shape) const;
  const cuda::QueryTiles& of_rows() const { return of_rows_; }

 private:
  cuda::QueryTiles of_rows_;
};

// Whether a graph of this shape can run the step.
bool FitsIn(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape);

// Pads the step's arrays to the shape's sizes. Padding rows have token 0 and position 0, attend to nothing, and are
// not written. An empty plan results in a step of padding only.
// REQUIRES: FitsIn.
GpuStep Pad(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape);

// Device memory that a step's work uses besides pages. That of graphs does not move.
struct StepMemory {
  explicit StepMemory(GpuDevice& device) : upload(device) {}

  // Queues the copy of a step's numbers.
  absl::Status Queue(const GpuStep& step) {
    const std::vector<int64_t>& numbers = step.plan.numbers;
    LS_ASSIGN_OR_RETURN(char* const host, upload.Begin(numbers.size() * sizeof(int64_t)));
    std::copy(numbers.begin(), numbers.end(), reinterpret_cast<int64_t*>(host));
    return upload.Queue();
  }
  int64_t* numbers() const { return upload.as<int64_t>(); }

  GpuUpload upload;
  GpuMemory partial_results;  // of single rows
};

struct StepGraph {
  StepShape shape;
  GpuStep step;       // of padding only: all steps of this shape have their arrays at the same places
  at::Tensor logits;  // in the memory of graphs
  std::unique_ptr<GpuGraph> graph;
};

}  // namespace longshort::models
