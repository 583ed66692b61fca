// Batches of a classifier as graphs, one for each bucket (models/gpu/graph_buckets.h): hundreds of calls of a network
// are one. Thread: the worker's.
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
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/gpu_upload.h"

namespace longshort::models {

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

// `Shape`: how large a batch is, or a bucket: HasRoomFor(other) and bytes() on the device.
template <typename Shape>
class GraphCache final {
 public:
  struct Graph {
    Shape bucket;
    BatchGraph batch;
  };

  // The device must outlive it.
  explicit GraphCache(GpuDevice& device) : device_(device), upload_(device) {}

  // Makes the graphs, once.
  //   buckets      the largest first
  //   write_empty  writes a bucket of padding only, bucket.bytes()
  //   bind         the layers of a batch that lies in this memory of the device: what CaptureBatch takes
  // Errors: those of CaptureBatch; then there are no graphs.
  absl::Status Capture(const std::vector<Shape>& buckets,
                       const std::function<void(const Shape& bucket, char* to)>& write_empty,
                       const std::function<std::function<at::Tensor()>(const Shape& bucket, char* memory)>& bind) {
    std::vector<Graph> graphs;
    for (const Shape& bucket : buckets) {
      // As large as the first, so that all memory of uploads has room for any bucket from then on.
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

  // The smallest that has room for the batch; null: there is none.
  Graph* Find(const Shape& batch) {
    const auto found = std::find_if(graphs_.rbegin(), graphs_.rend(),
                                    [&batch](const Graph& graph) { return graph.bucket.HasRoomFor(batch); });
    return found == graphs_.rend() ? nullptr : &*found;
  }
  // Runs a batch, of which `write` writes so many bytes, and brings the logits of its items to `logits`, which is
  // pinned, [items, classes]. Errors: those of GpuDevice.
  absl::Status Run(Graph& graph, size_t bytes, const std::function<void(char* to)>& write, int64_t items,
                   float* logits) {
    LS_RETURN_IF_ERROR(Upload(bytes, write));
    return RunBatch(device_, graph.batch, items, logits);
  }

 private:
  absl::Status Upload(size_t bytes, const std::function<void(char* to)>& write) {
    LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(bytes));
    write(host);
    return upload_.Queue();
  }

  GpuDevice& device_;
  // Of all graphs, which run one after the other.
  GpuUpload upload_;
  GpuMemory logits_;
  std::vector<Graph> graphs_;  // the largest first
};

}  // namespace longshort::models
