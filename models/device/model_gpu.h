// The GPU of a model, for code that uses LibTorch, and the sizes of its graphs.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "ATen/Functions.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/Device.h"
#include "c10/util/Exception.h"
#include "models/device/gpu_device.h"
#include "models/device/library.h"
#include "models/device/pages.h"

namespace longshort::models {

// --- graph buckets: the sizes of steps and batches that GPUs run as graphs ---
//
// A graph has a fixed size. So a worker captures a graph for each bucket. A step or batch runs as the smallest bucket
// that fits it, padded to the bucket's size. A step or batch that fits no bucket runs without a graph.

// The largest buckets. For larger steps and batches, launch overhead does not matter.
struct GraphLimits {
  // Rows of a language model's step. Its graphs are captured after the pages are allocated.
  int64_t rows = 512;
  // Images, of the size in the classifier's configuration.
  int64_t images = 32;
  // Documents in a batch, and their total rows.
  int64_t documents = 32;
  int64_t document_rows = 4096;
};

// Rows of a step, smallest first. Sizes first double; they grow by half where arithmetic dominates launch overhead.
inline constexpr int64_t kStepRowBuckets[] = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512};

// Rows of the largest step of a language model: so many keep a GPU's multiprocessors busy.
inline constexpr int64_t kMaxStepRows = 4096;

// Classifiers' buckets, largest first: the memory that LibTorch reserves for the first graph then suffices for the
// others, which reuse it. There is a graph for every combination of rows and documents.
inline constexpr int64_t kDocumentRowBuckets[] = {4096, 3072, 2048, 1536, 1024, 768, 512, 384, 256, 192, 128, 64};
inline constexpr int64_t kDocumentBuckets[] = {32, 16, 8, 4, 2, 1};
// Padding is less than a fifth of the batch.
inline constexpr int64_t kImageBuckets[] = {32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};

// --- the GPU ---

struct ModelGpu {
  // The LibTorch device of its tensors.
  c10::Device tensors;
  // Opens a stream for one worker. Errors: those of GpuDevice. Call OpenDevice instead.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Receives the loss of the GPU.
  std::shared_ptr<GpuLoss> loss;
  GraphLimits graphs = {};
};

// Opens a stream for one worker. Errors: those of GpuDevice; UNIMPLEMENTED for chips without the kernels' instructions.
inline absl::StatusOr<std::unique_ptr<GpuDevice>> OpenDevice(const ModelGpu& gpu) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, gpu.open());
  LS_RETURN_IF_ERROR(CheckChip(device->facts()));
  return device;
}

// A tensor in memory of the options' device. at::from_blob would ask the driver which device that is.
inline at::Tensor TensorIn(void* memory, at::IntArrayRef sizes, const at::TensorOptions& options,
                           at::OptionalIntArrayRef strides = std::nullopt) {
  return at::for_blob(memory, sizes).strides(strides).options(options).target_device(options.device()).make_tensor();
}

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
    if (!status.ok() && !absl::IsResourceExhausted(status) && device_->has_failed()) {
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
  // Returns the result of `work`, which calls LibTorch. If it throws because the GPU is lost, reports that.
  template <typename Work>
  auto Run(const Work& work) const {
    try {
      return work();
    } catch (const std::exception& error) {
      ReportLoss(LibraryError("on a GPU", error)).IgnoreError();
      throw;
    }
  }
  void Launch(const KernelCall& call) const { ThrowUnlessOk(device_->Launch(call)); }

 private:
  const at::Device tensors_;
  const std::shared_ptr<GpuLoss> loss_;
  const std::unique_ptr<GpuDevice> device_;
};

}  // namespace longshort::models
