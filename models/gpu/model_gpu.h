// The GPU of a model. The one header of this room that knows LibTorch.
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
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_loss.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/graph_buckets.h"
#include "models/gpu/query_tiles.h"

namespace longshort::models {

struct ModelGpu {
  // Where LibTorch's tensors on it are.
  c10::Device tensors;
  // A stream of its own for one worker. Errors: those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Told once it is lost.
  std::shared_ptr<GpuLoss> loss;
  GraphLimits graphs = {};
};

// Errors: UNIMPLEMENTED for heads that are too wide for the kernels.
inline absl::Status CheckHeadWidth(int64_t head_width) {
  if (head_width <= cuda::kMaxHeadWidth) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("the model's heads are ", head_width, " wide; on a GPU they may be ",
                                               cuda::kMaxHeadWidth, " at the most; run it on the CPU"));
}

// A worker's stream, for code that throws as LibTorch does. Its owner's destructor waits for what is queued, which uses
// the owner's memory. Thread: the worker's.
class WorkerGpu final {
 public:
  WorkerGpu(const ModelGpu& gpu, std::unique_ptr<GpuDevice> device)
      : tensors_(gpu.tensors), loss_(gpu.loss), device_(std::move(device)) {}

  GpuDevice& operator*() const { return *device_; }
  GpuDevice* operator->() const { return device_.get(); }
  at::TensorOptions Options(at::ScalarType type) const { return at::TensorOptions().device(tensors_).dtype(type); }

  // The status. Reports the loss of the GPU, if that is why it is not OK.
  absl::Status Noted(const absl::Status& status) const {
    if (!status.ok() && device_->has_failed()) {
      loss_->Tell(absl::StrCat(device_->facts().name, ": ", std::string(status.message())));
    }
    return status;
  }
  // Throws c10::OutOfMemoryError or std::runtime_error.
  void ThrowUnlessOk(const absl::Status& status) const {
    if (Noted(status).ok()) return;
    // What is queued reads tensors that go with the step or batch. It has to run before they do, where LibTorch's calls
    // do not wait for it.
    device_->BeforeLibraryCalls().IgnoreError();
    const std::string message(status.message());
    TORCH_CHECK_WITH(OutOfMemoryError, !absl::IsResourceExhausted(status), message);
    throw std::runtime_error(message);
  }
  void Launch(const KernelCall& call) const { ThrowUnlessOk(device_->Launch(call)); }

  // Pinned memory for so many logits. What was there before is gone.
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
  // Logits in that memory, when all that is queued is done.
  absl::Span<const float> BringBack(const at::Tensor& logits) {
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
