// What of a language model's step is a device's own business: its memory, and the kernels that read and write pages.
//
// The runner (transformer_ls.h) checks and plans a step and goes through the layers. Its tensors are on the backend's
// device, and norms, activations and sums of rows are LibTorch's there. All else is a verb of this class, called once
// for each layer at the most, never for a row; but for `linear`: who makes a backend brings the decoder's maps into the
// form in which the device multiplies them (Linear::packed), and the layers apply them.
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

// What a layer has computed of a step's rows; float32, rows contiguous each.
struct LayerRows {
  at::Tensor input;              // [rows, d]: what keys and values were made of
  at::Tensor keys_values;        // [rows, 2, d], before DualLN
  at::Tensor projection_logits;  // [rows, H*R]
  at::Tensor window;             // [rows, 2, d]: keys and values after the window's DualLN
  // Of chunks that become full, keys and values after DualLN, [full * R, 2, d]; undefined if there are none.
  at::Tensor memory;   // mix, then project: for later segments
  at::Tensor segment;  // project, then mix: for the chunk's own segment
};

// Chunks that become full, compressed to R vectors each: [full * R, ...].
struct MixedChunks {
  at::Tensor inputs;       // [full * R, d]
  at::Tensor keys_values;  // [full * R, 2, d]
};

// What a step's layers make of its plan, whose numbers are on the device ([numbers] int64): logits [logit rows, V],
// undefined if there are none.
using StepLayers = std::function<at::Tensor(const StepPlan& plan, const at::Tensor& numbers)>;

struct StepOutput {
  absl::Span<const float> logits;  // on the host until the next step begins
  bool was_replayed = false;       // by a graph
};

// One worker's: its pages, and its step. What it throws is LibTorch's. Thread: the worker's.
class LanguageModelBackend {
 public:
  virtual ~LanguageModelBackend() = default;

  // Makes room for so many pages; what was there before is gone, but for the rows of zero memory.
  // Errors: RESOURCE_EXHAUSTED; then there are no pages.
  virtual absl::Status Allocate(const CachePages& pages) = 0;
  // A layer's row of zero memory, keys and values [1, 2, d] after DualLN: every row of kZeroPage.
  virtual void WriteZeroRows(int64_t layer, const at::Tensor& in_window, const at::Tensor& in_segment) = 0;

  // REQUIRES of these three: the pages exist, the page has these rows, and there are as many bytes as it has.
  // Errors: INTERNAL if the device fails.
  virtual absl::Status CopyPage(PageKind kind, PageId from, PageId to) = 0;
  virtual absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const = 0;
  virtual absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) = 0;

  // Begins a step, whose plan must outlive it: brings it to the device. Returns its numbers there, [numbers] int64.
  virtual at::Tensor BeginStep(const StepPlan& plan) = 0;
  // Mixes the chunks that become full, out of rows of this step and of those kept on open chunk pages.
  // REQUIRES: there are some; WriteRows has not been called for this layer.
  virtual MixedChunks MixChunks(int64_t layer, const LayerRows& rows) = 0;
  // Writes every row where the plan says: to the window, the memory, the segment, or its open chunk.
  virtual void WriteRows(int64_t layer, const LayerRows& rows) = 0;
  // Attends from all rows of the step: one softmax over the window and the compressed vectors that each sees.
  //   queries  [rows, d], scaled by 1/sqrt(head_dim)
  //   returns  [rows, d]
  // REQUIRES: WriteRows has been called for this layer.
  virtual at::Tensor Attend(int64_t layer, const at::Tensor& queries) = 0;
  // Ends the step, if nothing has failed: brings `logits` [logit rows, V], undefined if there are none, to the host in
  // one piece, which stays until the next step begins.
  virtual absl::Span<const float> EndStep(const at::Tensor& logits) = 0;

  // A whole step: BeginStep, the layers, EndStep; or a graph that PrepareSteps has captured of them.
  virtual StepOutput RunStep(const StepPlan& plan, const StepLayers& layers) {
    return {.logits = EndStep(layers(plan, BeginStep(plan)))};
  }
  // Makes ready for steps of these layers, which must outlive this, on the pages that there are. Called again when they
  // are others. Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails.
  virtual absl::Status PrepareSteps(const StepLayers& /*layers*/) { return absl::OkStatus(); }

  // As LanguageModel::Rest.
  virtual void Rest() {}
};

// A device that a decoder has been prepared for: what the decoder needs there, which all workers' backends share.
struct PreparedDevice : PageFormat {
  // One without pages, for a worker on this device. Thread-safe.
  // Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails; those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<LanguageModelBackend>>(const WorkerDevice& worker)> new_backend;
};

}  // namespace longshort::models
