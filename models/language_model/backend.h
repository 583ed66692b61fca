// The device-dependent part of a language model's step: memory, and the kernels that read and write pages.
//
// The runner (transformer_ls.h) checks and plans a step, and runs the layers. Its tensors are on the backend's device,
// where LibTorch computes norms, activations and sums of rows. The creator of a backend packs the decoder's linear maps
// for the device (Linear::packed), and the layers apply them. Everything else is a method of this class, called at most
// once per layer, never per row.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/language_model/step_plan.h"
#include "models/model.h"
#include "models/worker_device.h"

namespace longshort::models {

// A layer's results for the rows of a step: float32, each row contiguous.
struct LayerRows {
  at::Tensor input;              // [rows, d]: the input of keys and values
  at::Tensor keys_values;        // [rows, 2, d], before DualLN
  at::Tensor projection_logits;  // [rows, H*R]
  at::Tensor window;             // [rows, 2, d]: keys and values after the window's DualLN
  // Keys and values of chunks that become full, after DualLN, [full * R, 2, d]; undefined if there are none.
  at::Tensor memory;   // mix, then project: for later segments
  at::Tensor segment;  // project, then mix: for the chunk's own segment
};

// Chunks that become full, compressed to R vectors each: [full * R, ...].
struct MixedChunks {
  at::Tensor inputs;       // [full * R, d]
  at::Tensor keys_values;  // [full * R, 2, d]
};

// Runs a step's layers. The plan's numbers are on the device ([numbers] int64). Returns logits [logit rows, V],
// undefined if there are none.
using StepLayers = std::function<at::Tensor(const StepPlan& plan, const at::Tensor& numbers)>;

struct StepOutput {
  absl::Span<const float> logits;  // on the host, until the next step begins
  bool was_replayed = false;       // run as a graph
};

// The pages and the current step of one worker. Throws LibTorch's exceptions. Thread: the worker's.
class LanguageModelBackend {
 public:
  virtual ~LanguageModelBackend() = default;

  // Allocates pages, and discards the previous ones except the rows of zero memory.
  // Errors: RESOURCE_EXHAUSTED; then there are no pages.
  virtual absl::Status Allocate(const CachePages& pages) = 0;
  // Sets every row of a layer's kZeroPage: keys and values [1, 2, d] of zero memory, after DualLN.
  virtual void WriteZeroRows(int64_t layer, const at::Tensor& in_window, const at::Tensor& in_segment) = 0;

  // REQUIRES for these three: the pages exist, the page has these rows, and `bytes` has the size of a page.
  // Errors: INTERNAL if the device fails.
  virtual absl::Status CopyPage(PageKind kind, PageId from, PageId to) = 0;
  virtual absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const = 0;
  virtual absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) = 0;

  // Begins a step: copies its plan to the device, and returns the plan's numbers there, [numbers] int64. The plan must
  // outlive the step.
  virtual at::Tensor BeginStep(const StepPlan& plan) = 0;
  // Mixes the chunks that become full, from rows of this step and rows on open chunk pages.
  // REQUIRES: a chunk becomes full; WriteRows has not been called for this layer.
  virtual MixedChunks MixChunks(int64_t layer, const LayerRows& rows) = 0;
  // Writes every row to the places in the plan: window, memory, segment, or open chunk.
  virtual void WriteRows(int64_t layer, const LayerRows& rows) = 0;
  // Attention of all rows of the step: one softmax over the window and the compressed vectors that each row sees.
  //   queries  [rows, d], scaled by 1/sqrt(head_dim)
  //   returns  [rows, d]
  // REQUIRES: WriteRows has been called for this layer.
  virtual at::Tensor Attend(int64_t layer, const at::Tensor& queries) = 0;
  // Ends a step that has not failed: copies `logits` [logit rows, V], undefined if there are none, to the host. The
  // result is contiguous, and valid until the next step begins.
  virtual absl::Span<const float> EndStep(const at::Tensor& logits) = 0;

  // Runs a whole step: BeginStep, the layers and EndStep, or a graph of them that PrepareSteps has captured.
  virtual StepOutput RunStep(const StepPlan& plan, const StepLayers& layers) {
    return {.logits = EndStep(layers(plan, BeginStep(plan)))};
  }
  // Prepares steps of these layers on the current pages. `layers` must outlive this object. Call again after Allocate.
  // Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails.
  virtual absl::Status PrepareSteps(const StepLayers& /*layers*/) { return absl::OkStatus(); }

  // As LanguageModel::Rest.
  virtual void Rest() {}
};

// The state of a decoder on a device, which all workers' backends share.
struct PreparedDevice : PageFormat {
  // Creates a backend without pages for a worker on this device. Thread-safe.
  // Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails; those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<LanguageModelBackend>>(const WorkerDevice& worker)> new_backend;
};

}  // namespace longshort::models
