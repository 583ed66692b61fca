#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Context.h"
#include "ATen/cuda/CUDAGraph.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "c10/cuda/CUDAFunctions.h"
#include "c10/cuda/CUDAStream.h"
#include "models/device/gpu_device.h"
#include "models/families/language_model/backend.h"
#include "models/load_options.h"
#include "models/ops/item_attention/batches_on_device.h"
#include "models/ops/item_attention/gpu_item_attention.h"

namespace longshort::models {
namespace {

// LibTorch memory for a backend's graphs. It is not used for anything else while the backend lives.
class GraphMemory final {
 public:
  explicit GraphMemory(c10::cuda::CUDAStream stream) : stream_(stream) {}
  ~GraphMemory() {
    for (; captures_ > 0; --captures_) allocator().releasePool(stream_.device_index(), pool_);
  }
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  void BeforeCapture() {
    allocator().beginAllocateToPool(stream_.device_index(), pool_,
                                    [stream = stream_.stream()](cudaStream_t other) { return other == stream; });
    ++captures_;
  }
  void AfterCapture() { allocator().endAllocateToPool(stream_.device_index(), pool_); }

 private:
  static c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator() { return *c10::cuda::CUDACachingAllocator::get(); }

  const c10::cuda::CUDAStream stream_;
  const at::cuda::MempoolId_t pool_ = at::cuda::graph_pool_handle();
  int captures_ = 0;
};

// GPU streams, each of which belongs to one worker at a time. LibTorch's pool has 32 streams per GPU and hands them out
// in turn, even if they are in use. Two workers could then share a stream, and one could capture the other's work in a
// graph. Streams are never destroyed, because LibTorch keeps memory for them. Thread-safe.
class WorkerStreams final {
 public:
  // The last holder returns the stream to the pool, once its work is done. Throws LibTorch's exceptions.
  static std::shared_ptr<const c10::cuda::CUDAStream> Take(c10::DeviceIndex gpu) {
    static WorkerStreams& streams = *new WorkerStreams;
    const auto give_back = [gpu, &streams = streams](const c10::cuda::CUDAStream* stream) {
      const MutexLock lock(streams.mutex_);
      streams.free_[gpu].push_back(stream->stream());
      delete stream;
    };
    return {new c10::cuda::CUDAStream(c10::cuda::getStreamFromExternal(streams.Free(gpu), gpu)), give_back};
  }

 private:
  // REQUIRES: the GPU is the calling thread's current one.
  cudaStream_t Free(c10::DeviceIndex gpu) {
    const MutexLock lock(mutex_);
    std::vector<cudaStream_t>& free = free_[gpu];
    cudaStream_t stream = nullptr;
    if (free.empty()) {
      C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    } else {
      stream = free.back();
      free.pop_back();
    }
    return stream;
  }

  Mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<cudaStream_t>> free_ ABSL_GUARDED_BY(mutex_);
};

// LibTorch keeps freed memory for its next tensors, and refuses to free it while a worker captures.
void FreeCachedMemory() {
  try {
    c10::cuda::CUDACachingAllocator::emptyCache();
  } catch (const std::exception&) {  // the allocation fails as it did
  }
}

// Makes a new stream the calling thread's current stream, on which the backend is then created.
absl::StatusOr<std::unique_ptr<GpuDevice>> OpenStream(int number) {
  C10_CUDA_CHECK(cudaSetDevice(number));
  // The default stream may still copy weights and tables (BeginLoading). Waiting for the whole device, or for the
  // thread's current stream, would invalidate a capture by another worker.
  c10::cuda::getDefaultCUDAStream(static_cast<c10::DeviceIndex>(number)).synchronize();
  const auto stream = WorkerStreams::Take(static_cast<c10::DeviceIndex>(number));
  c10::cuda::setCurrentCUDAStream(*stream);
  const auto memory = std::make_shared<GraphMemory>(*stream);
  return MakeCudaDevice({.number = number,
                         .stream = stream->stream(),
                         // The thread that runs steps is not the one that created the backend.
                         .before_library_calls = [stream] { c10::cuda::setCurrentCUDAStream(*stream); },
                         .before_capture = [memory] { memory->BeforeCapture(); },
                         .after_capture = [memory] { memory->AfterCapture(); },
                         .free_cached_memory = FreeCachedMemory});
}

class CudaBackends final : public GpuBackends {
 public:
  explicit CudaBackends(std::shared_ptr<GpuLoss> loss) : loss_(std::move(loss)) {}

  // The thread's current stream may belong to a worker that it created before, which may now run or capture on it.
  void BeginLoading(const WorkerDevice& device) const override {
    if (Find(device).ok()) {
      c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream(static_cast<c10::DeviceIndex>(device.index)));
    }
  }
  absl::StatusOr<PreparedDevice> Prepare(Decoder decoder, const WorkerDevice& device,
                                         const std::function<void()>& between) const override {
    LS_ASSIGN_OR_RETURN(ModelGpu gpu, Find(device));
    BeginLoading(device);
    return PrepareForGpu(std::move(decoder), std::move(gpu), between);
  }
  absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeItemAttention(const WorkerDevice& device,
                                                                      int64_t head_width) const override {
    LS_ASSIGN_OR_RETURN(const ModelGpu gpu, Find(device));
    return MakeGpuItemAttention(gpu, head_width);
  }
  int64_t ImageGraphBytes(const ImageShape& image, int64_t classes) const override {
    return models::ImageGraphBytes(limits_, image, classes);
  }
  int64_t DocumentGraphBytes(int64_t classes) const override { return models::DocumentGraphBytes(limits_, classes); }

 private:
  absl::StatusOr<ModelGpu> Find(const WorkerDevice& device) const {
    const int count = c10::cuda::device_count();
    if (device.kind != DeviceKind::kCuda || device.index >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no ", DeviceName(device), "; GPUs of this machine: ", count));
    }
    return ModelGpu{.tensors = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.index)),
                    .open = [number = device.index] { return OpenStream(number); },
                    .loss = loss_,
                    .graphs = limits_};
  }

  const std::shared_ptr<GpuLoss> loss_;
  const GraphLimits limits_;
};

}  // namespace

Gpus FindCudaGpus() {
  Gpus gpus = {.kind = DeviceKind::kCuda};
  for (int number = 0; number < c10::cuda::device_count(); ++number) {
    cudaDeviceProp properties = {};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, number));
    gpus.memory_bytes.push_back(static_cast<int64_t>(properties.totalGlobalMem));
  }
  return gpus;
}

std::shared_ptr<const GpuBackends> MakeCudaBackends(std::shared_ptr<GpuLoss> loss) {
  // LibTorch's defaults are less exact: float32 convolutions use TF32, and sums of bfloat16 products may be in
  // bfloat16.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/false);
  return std::make_shared<const CudaBackends>(std::move(loss));
}

}  // namespace longshort::models
