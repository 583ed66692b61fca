// Batches of documents as graphs, one for each of some numbers of rows and of documents. Thread: the worker's.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/attention/batch_graph.h"
#include "models/attention/documents_on_device.h"
#include "models/attention/item_attention.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/gpu_upload.h"
#include "models/gpu/model_gpu.h"

namespace longshort {

// What layers read of them.
ItemAttention::Documents TensorsOf(const DocumentsOnDevice& documents, at::Device device);

class DocumentGraphs final {
 public:
  // Told which documents the layers that are run or captured attend in.
  using Use = std::function<void(const DocumentsOnDevice& documents)>;

  // What all of them refer to.
  static int64_t Bytes(const GraphLimits& most, int64_t classes);

  // The device must outlive it.
  DocumentGraphs(GpuDevice& device, at::Device tensors, const GraphLimits& most, Use use)
      : device_(device), tensors_(tensors), most_(most), use_(std::move(use)), upload_(device) {}

  // As ItemAttention::PrepareDocuments.
  absl::Status Capture(int64_t item_documents, const ItemAttention::DocumentLayers& layers);

  struct Graph {
    DocumentShape room;
    BatchGraph batch;

    int64_t item_documents() const { return room.documents / batch.items(); }
  };
  // The smallest that has room for the batch; null: there is none.
  Graph* Find(const DocumentShape& shape);
  // Brings the logits of the items to `logits`, which is pinned, [items, classes]. Errors: those of GpuDevice.
  absl::Status Run(Graph& graph, const DocumentArrays& documents, int64_t items, float* logits);

 private:
  GpuDevice& device_;
  const at::Device tensors_;
  const GraphLimits most_;
  const Use use_;
  // Of all graphs, which run one after the other.
  GpuUpload upload_;
  GpuMemory logits_;
  std::vector<Graph> graphs_;  // the largest first
};

}  // namespace longshort
