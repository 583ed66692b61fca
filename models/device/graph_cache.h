// Runs a classifier's batches as graphs, one for each bucket (models/device/model_gpu.h). A graph replaces hundreds
// of launches by one. Thread: the worker's.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "models/device/gpu_device.h"
#include "models/device/gpu_memory.h"

namespace longshort::models {

struct BatchGraph {
  at::Tensor logits;  // [items, classes], written by each run
  std::unique_ptr<GpuGraph> graph;

  int64_t items() const { return logits.size(0); }
  int64_t classes() const { return logits.size(1); }
};

// Runs `layers` once without a graph, captures it, and runs the graph once. `layers` returns logits [items, classes].
// It is kept: objects that it refers to must live as long as the graph.
//   logits  memory for the logits of all graphs, which run in turn; allocated if empty, so the first graph must be
//           the one with the most items
// Errors: those of GpuDevice; if `layers` throws: RESOURCE_EXHAUSTED if there is no memory, otherwise INTERNAL.
absl::StatusOr<BatchGraph> CaptureBatch(GpuDevice& device, std::function<at::Tensor()> layers, GpuMemory& logits);

// Queues a run of a graph, and a copy of the first `items` rows of logits to `to`, which is pinned. Errors: those of
// GpuDevice.
absl::Status QueueBatch(GpuDevice& device, BatchGraph& graph, int64_t items, float* to);

// The graphs of one classifier. `Shape` is the size of a batch or bucket, with HasRoomFor(other) and bytes() on the
// device.
template <typename Shape>
class GraphCache final {
 public:
  struct Graph {
    Shape bucket;
    BatchGraph batch;
  };

  // The device must outlive this object.
  explicit GraphCache(GpuDevice& device) : device_(device), upload_(device) {}

  // Captures the graphs. Call once.
  //   buckets      largest first
  //   write_empty  writes bucket.bytes() of a bucket that is all padding
  //   bind         returns the layers of a batch in this device memory, for CaptureBatch
  // Errors: those of CaptureBatch; then there are no graphs.
  absl::Status Capture(const std::vector<Shape>& buckets,
                       const std::function<void(const Shape& bucket, char* to)>& write_empty,
                       const std::function<std::function<at::Tensor()>(const Shape& bucket, char* memory)>& bind) {
    std::vector<Graph> graphs;
    for (const Shape& bucket : buckets) {
      // As large as the first bucket, so that the upload's memory fits any bucket from now on.
      const size_t bytes = buckets.front().bytes();
      LS_RETURN_IF_ERROR(upload_.Reserve(bytes));
      LS_RETURN_IF_ERROR(Upload(bytes, [&](char* to) { write_empty(bucket, to); }));
      LS_RETURN_IF_ERROR(device_.BeforeLibraryCalls());
      LS_ASSIGN_OR_RETURN(BatchGraph batch, CaptureBatch(device_, bind(bucket, upload_.template as<char>()), logits_));
      graphs.push_back({.bucket = bucket, .batch = std::move(batch)});
    }
    graphs_ = std::move(graphs);
    return absl::OkStatus();
  }

  // Returns the smallest graph that fits the batch, or null.
  Graph* Find(const Shape& batch) {
    const auto found = std::find_if(graphs_.rbegin(), graphs_.rend(),
                                    [&batch](const Graph& graph) { return graph.bucket.HasRoomFor(batch); });
    return found == graphs_.rend() ? nullptr : &*found;
  }
  // Queues a batch, of which `write` writes `bytes` bytes, and a copy of its items' logits to `logits` [items,
  // classes], which is pinned. Errors: those of GpuDevice.
  absl::Status Queue(Graph& graph, size_t bytes, const std::function<void(char* to)>& write, int64_t items,
                     float* logits) {
    LS_RETURN_IF_ERROR(Upload(bytes, write));
    return QueueBatch(device_, graph.batch, items, logits);
  }

 private:
  absl::Status Upload(size_t bytes, const std::function<void(char* to)>& write) {
    LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(bytes));
    write(host);
    return upload_.Queue();
  }

  GpuDevice& device_;
  // Shared by all graphs, which run in turn.
  GpuUpload upload_;
  GpuMemory logits_;
  std::vector<Graph> graphs_;  // largest first
};

}  // namespace longshort::models
