// A network's layers over one batch as a graph: hundreds of calls are one. Thread: the worker's.
#pragma once

#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"

namespace longshort {

struct BatchGraph {
  at::Tensor logits;  // [items, classes], where each run writes them
  std::unique_ptr<GpuGraph> graph;

  int64_t items() const { return logits.size(0); }
  int64_t classes() const { return logits.size(1); }
};

// Captures what `layers` does, after a first run without a graph, and runs it once. `layers` gives logits [items,
// classes]; it is kept, and what it refers to must live as long as the graph.
//   logits  memory for logits of all graphs, which run one after the other; empty: is allocated, so the first graph is
//           to be the one with the most items
// Errors: those of GpuDevice; what `layers` throws: RESOURCE_EXHAUSTED if there is no memory, INTERNAL else.
absl::StatusOr<BatchGraph> CaptureBatch(GpuDevice& device, std::function<at::Tensor()> layers, GpuMemory& logits);

// Runs it, and brings the first `items` rows of logits to `to`, which is pinned. Errors: those of GpuDevice.
absl::Status RunBatch(GpuDevice& device, BatchGraph& graph, int64_t items, float* to);

}  // namespace longshort
