// A step as a GPU runs it: its plan, and which of its rows attend in which way. Steps that graphs run are padded, so
// that all steps of a shape have their arrays at the same places of the same sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/gpu_upload.h"
#include "models/gpu/query_tiles.h"
#include "models/language_model/step_plan.h"
#include "models/weights/language_model_config.h"

namespace longshort::models {

struct GpuStep {
  StepPlan plan;  // its numbers have the arrays below, too
  StepPlan::Array single_rows;
  StepPlan::Array tiles;  // [tiles, 2]

  int64_t single_count() const { return single_rows.size; }
  int64_t tile_count() const { return tiles.size / 2; }
};

// The step as it is. Copies the plan.
GpuStep MakeGpuStep(const StepPlan& plan);

// What a graph has room for.
struct StepShape {
  int64_t rows = 0;
  int64_t full_chunks = 0;
  int64_t vectors = 0;      // of the full chunks
  int64_t page_ids = 0;     // of the three tables together
  int64_t single_rows = 0;  // 0: all rows attend in tiles
  int64_t tiles = 0;        // 0: none does
};

// The shapes that graphs are captured of, in the order in which a step takes the first that it fits in. Of every number
// of rows, up to `max_rows`, there are three:
//   single rows, no chunk ends;  single rows and ends of chunks;  tiles and ends of chunks
std::vector<StepShape> ShapesOfGraphs(const LanguageModelConfig& config, int64_t max_rows);

// Which rows of a step attend in which way, by either kind of shape.
class StepTiles final {
 public:
  explicit StepTiles(const StepPlan& plan);

  bool FitIn(const StepShape& shape) const;
  const cuda::QueryTiles& For(const StepShape& shape) const { return shape.tiles > 0 ? all_in_tiles_ : best_; }

 private:
  cuda::QueryTiles best_, all_in_tiles_;  // the second is empty if the first has no tiles
};

// Whether a graph of this shape can run the step.
bool FitsIn(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape);

// The step with arrays of the shape's sizes. What is padded computes row 0's token and position, attends to nothing,
// and is written nowhere. An empty plan gives a step of padding only.
// REQUIRES: FitsIn.
GpuStep Pad(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape);

// What a step's work refers to on the device beside pages; that of graphs stays where it is.
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
  GpuStep step;                // of padding only: all steps of this shape have their arrays where it has them
  at::Tensor numbers, logits;  // in the memory of graphs
  std::unique_ptr<GpuGraph> graph;
};

}  // namespace longshort::models
