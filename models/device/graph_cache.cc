#include "models/device/graph_cache.h"

#include <exception>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/device/model_gpu.h"

namespace longshort::models {
namespace {

// Returns the result of `work`, or its exception as a status.
absl::StatusOr<at::Tensor> Run(const std::function<at::Tensor()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return LibraryError("to capture a batch as a graph", error);
  }
}

}  // namespace

absl::StatusOr<BatchGraph> CaptureBatch(GpuDevice& device, std::function<at::Tensor()> layers, GpuMemory& logits) {
  const c10::InferenceMode inference;
  // Libraries initialise themselves in the first run, which cannot be captured.
  LS_ASSIGN_OR_RETURN(const at::Tensor first, Run(layers));
  if (logits.bytes() == 0) {
    LS_ASSIGN_OR_RETURN(logits, GpuMemory::OnDevice(device, first.nbytes(), GpuMemoryUse::kLibraryToo));
  }
  if (logits.bytes() < first.nbytes()) {
    return absl::InternalError(absl::StrCat("a graph's logits have ", first.nbytes(),
                                            " bytes, more than the first graph's ", logits.bytes(), " bytes"));
  }
  BatchGraph graph;
  graph.logits = TensorIn(logits.data(), first.sizes(), first.options());
  const auto body = [layers = std::move(layers), to = graph.logits] {
    const c10::InferenceMode inference;  // an emulated device calls this when it runs queued work
    return Run([&] { return to.copy_(layers()); }).status();
  };
  LS_ASSIGN_OR_RETURN(graph.graph, device.Capture(body));
  // A graph's first run is slower than the others.
  absl::Status status = device.Replay(*graph.graph);
  if (status.ok()) status = device.Synchronize();
  if (status.ok()) return graph;
  device.Synchronize().IgnoreError();  // queued work uses the graph, which is destroyed now
  return status;
}

absl::Status QueueBatch(GpuDevice& device, BatchGraph& graph, int64_t items, float* to) {
  LS_RETURN_IF_ERROR(device.Replay(*graph.graph));
  return device.Copy(to, graph.logits.const_data_ptr(), items * graph.classes() * sizeof(float));
}

}  // namespace longshort::models
