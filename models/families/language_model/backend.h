// A language model on a device, for one worker: pages, and steps that read and write them.
//
// The runner (transformer_ls.h) checks and plans a step. The creator of a backend has prepared the model's weights for
// the device (PrepareDecoder).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/device/model_gpu.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/step_plan.h"
#include "models/load_options.h"
#include "models/model.h"
#include "models/worker_device.h"

namespace longshort::models {

struct StepOutput {
  absl::Span<const float> logits;                            // on the host, as StepResult's
  bool was_replayed = false;                                 // run as a graph
  std::optional<absl::Duration> device_time = std::nullopt;  // as StepResult's
};

// Throws LibTorch's exceptions. Thread: the worker's.
class LanguageModelBackend {
 public:
  virtual ~LanguageModelBackend() = default;

  // Allocates pages, and discards the previous ones except the rows of zero memory.
  // Errors: RESOURCE_EXHAUSTED; then there are no pages.
  virtual absl::Status Allocate(const CachePages& pages) = 0;
  // REQUIRES for these three: the pages exist, the page has these rows, and `bytes` has the size of a page.
  // Errors: INTERNAL if the device fails.
  virtual absl::Status CopyPage(PageKind kind, PageId from, PageId to) = 0;
  virtual absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const = 0;
  virtual absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) = 0;

  // Runs a step. The plan must outlive it.
  virtual StepOutput RunStep(const StepPlan& plan) = 0;
  // As LanguageModel::BeginStep, FinishStep and steps_at_once.
  virtual void BeginStep(const StepPlan& plan) { begun_ = RunStep(plan); }
  virtual StepOutput FinishStep() { return begun_; }
  virtual int64_t steps_at_once() const { return 1; }
  // Prepares steps on the current pages. Call again after Allocate.
  // Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails.
  virtual absl::Status PrepareSteps() { return absl::OkStatus(); }

  // As LanguageModel::Rest.
  virtual void Rest() {}

 private:
  StepOutput begun_;
};

// The state of a decoder on a device, which all workers' backends share.
struct PreparedDevice : PageFormat {
  // Creates a backend without pages for a worker on this device. Thread-safe.
  // Errors: RESOURCE_EXHAUSTED if the device has no memory for it, INTERNAL if it fails; those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<LanguageModelBackend>>(const WorkerDevice& worker)> new_backend;
};

// Prepares the decoder, whose tensors are on the host, for a device: its matrices in the device's memory order, and
// tables that depend on the weights alone. Calls `between` repeatedly, which may throw.
// `gpus` prepares it for a GPU; null: no GPU support.
// Throws what LibTorch throws. Errors: UNIMPLEMENTED for a kind of device that has no backend.
absl::StatusOr<PreparedDevice> PrepareDecoder(
    Decoder decoder, const WorkerDevice& device, const GpuBackends* gpus = nullptr,
    const std::function<void()>& between = [] {});

// The same for the CPU and for a GPU. Pages hold bfloat16 if the decoder's matrices that multiply tokens do, else
// float32.
PreparedDevice PrepareForCpu(Decoder decoder, const std::function<void()>& between);
// Errors: UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder decoder, ModelGpu gpu, const std::function<void()>& between);

}  // namespace longshort::models
