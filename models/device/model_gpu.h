// The GPU of a model. The only header of this folder that uses LibTorch.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "c10/core/Device.h"
#include "c10/util/Exception.h"
#include "models/device/gpu_device.h"
#include "models/device/gpu_loss.h"
#include "models/device/gpu_memory.h"
#include "models/device/graph_buckets.h"
#include "models/device/pages.h"

namespace longshort::models {

struct ModelGpu {
  // The LibTorch device of its tensors.
  c10::Device tensors;
  // Opens a stream for one worker. Errors: those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Receives the loss of the GPU.
  std::shared_ptr<GpuLoss> loss;
  GraphLimits graphs = {};
};

// Errors: UNIMPLEMENTED for heads that are too wide for the kernels.
inline absl::Status CheckHeadWidth(int64_t head_width) {
  if (head_width <= cuda::kMaxHeadWidth) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("the model's heads are ", head_width, " wide; a GPU supports at most ",
                                               cuda::kMaxHeadWidth, "; run it on the CPU"));
}

// A worker's stream, for code that throws as LibTorch does. The owner's destructor must wait for queued work, which
// uses the owner's memory. Thread: the worker's.
class WorkerGpu final {
 public:
  WorkerGpu(const ModelGpu& gpu, std::unique_ptr<GpuDevice> device)
      : tensors_(gpu.tensors), loss_(gpu.loss), device_(std::move(device)) {}

  GpuDevice& operator*() const { return *device_; }
  GpuDevice* operator->() const { return device_.get(); }
  at::TensorOptions Options(at::ScalarType type) const { return at::TensorOptions().device(tensors_).dtype(type); }

  // Returns the status. Reports the loss of the GPU if that is why it is not OK.
  absl::Status ReportLoss(const absl::Status& status) const {
    if (!status.ok() && device_->has_failed()) {
      loss_->Report(absl::StrCat(device_->facts().name, ": ", std::string(status.message())));
    }
    return status;
  }
  // Throws c10::OutOfMemoryError or std::runtime_error.
  void ThrowUnlessOk(const absl::Status& status) const {
    if (ReportLoss(status).ok()) return;
    // Queued work reads tensors that are freed with the step or batch. If LibTorch's calls do not wait for it, it must
    // run before they are freed.
    device_->BeforeLibraryCalls().IgnoreError();
    const std::string message(status.message());
    TORCH_CHECK_WITH(OutOfMemoryError, !absl::IsResourceExhausted(status), message);
    throw std::runtime_error(message);
  }
  void Launch(const KernelCall& call) const { ThrowUnlessOk(device_->Launch(call)); }

  // Returns pinned memory for `count` logits. Invalidates the previous logits.
  float* HostLogits(int64_t count) {
    const size_t bytes = count * sizeof(float);
    if (logits_.bytes() < bytes) {
      ThrowUnlessOk(device_->Synchronize());
      absl::StatusOr<GpuMemory> larger = GpuMemory::Pinned(*device_, std::max(bytes, 2 * logits_.bytes()));
      ThrowUnlessOk(larger.status());
      logits_ = *std::move(larger);
    }
    return logits_.as<float>();
  }
  // Waits for all queued work, and returns the logits in that memory.
  absl::Span<const float> CopyToHost(const at::Tensor& logits) {
    float* const on_host = HostLogits(logits.numel());
    at::from_blob(on_host, logits.sizes(), at::kFloat).copy_(logits, /*non_blocking=*/true);
    ThrowUnlessOk(device_->Synchronize());
    return {on_host, static_cast<size_t>(logits.numel())};
  }

 private:
  const at::Device tensors_;
  const std::shared_ptr<GpuLoss> loss_;
  const std::unique_ptr<GpuDevice> device_;
  GpuMemory logits_;
};

}  // namespace longshort::models
