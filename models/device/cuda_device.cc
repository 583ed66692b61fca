#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/device/gpu_device.h"

namespace longshort::models {
namespace {

// A kernel that needs more shared memory must opt in.
constexpr size_t kSharedBytesOfEveryKernel = 48 * 1024;

class CudaEvent final : public GpuEvent {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_;
};

class CudaGraph final : public GpuGraph {
 public:
  ~CudaGraph() override {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
  }

  cudaGraphExec_t executable = nullptr;
};

class CudaDevice final : public GpuDevice {
 public:
  CudaDevice(CudaDeviceOptions options, GpuFacts facts)
      : options_(std::move(options)), facts_(std::move(facts)), stream_(static_cast<cudaStream_t>(options_.stream)) {}
  ~CudaDevice() override {
    if (options_.stream == nullptr && stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status MakeStream() {
    LS_RETURN_IF_ERROR(Use());
    if (options_.stream != nullptr) return absl::OkStatus();
    return Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }

  const GpuFacts& facts() const override { return facts_; }

  absl::StatusOr<void*> Allocate(size_t bytes, GpuMemoryUse) override {
    void* memory = nullptr;
    LS_RETURN_IF_ERROR(Use());
    cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      options_.free_cached_memory();
      error = cudaMalloc(&memory, bytes);
    }
    LS_RETURN_IF_ERROR(Check(error, absl::StrCat("cudaMalloc of ", bytes, " bytes")));
    return memory;
  }
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    void* memory = nullptr;
    LS_RETURN_IF_ERROR(Use());
    LS_RETURN_IF_ERROR(Check(cudaMallocHost(&memory, bytes), absl::StrCat("cudaMallocHost of ", bytes, " bytes")));
    return memory;
  }
  void Free(void* memory) override { cudaFree(memory); }
  void FreePinned(void* memory) override { cudaFreeHost(memory); }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    LS_RETURN_IF_ERROR(Use());
    return Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  absl::Status Launch(const KernelCall& call) override;
  absl::Status BeforeLibraryCalls() override {
    options_.before_library_calls();
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<GpuEvent>> Record() override {
    cudaEvent_t event = nullptr;
    LS_RETURN_IF_ERROR(Use());
    LS_RETURN_IF_ERROR(Check(cudaEventCreate(&event), "cudaEventCreate"));
    auto owned = std::make_unique<CudaEvent>(event);
    LS_RETURN_IF_ERROR(Check(cudaEventRecord(event, stream_), "cudaEventRecord"));
    return owned;
  }
  absl::Status Wait(const GpuEvent& event) override {
    LS_RETURN_IF_ERROR(Use());
    return Check(cudaEventSynchronize(static_cast<const CudaEvent&>(event).get()), "cudaEventSynchronize");
  }
  absl::StatusOr<absl::Duration> Elapsed(const GpuEvent& from, const GpuEvent& to) override {
    const auto get = [](const GpuEvent& event) { return static_cast<const CudaEvent&>(event).get(); };
    float milliseconds = 0;
    LS_RETURN_IF_ERROR(Use());
    LS_RETURN_IF_ERROR(Check(cudaEventElapsedTime(&milliseconds, get(from), get(to)), "cudaEventElapsedTime"));
    return absl::Milliseconds(milliseconds);
  }
  absl::Status Synchronize() override {
    LS_RETURN_IF_ERROR(Use());
    return Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  absl::StatusOr<std::unique_ptr<GpuGraph>> Capture(const std::function<absl::Status()>& body) override;
  absl::Status Replay(GpuGraph& graph) override {
    LS_RETURN_IF_ERROR(Use());
    return Check(cudaGraphLaunch(static_cast<CudaGraph&>(graph).executable, stream_), "cudaGraphLaunch");
  }

  bool has_failed() override;

 private:
  // CUDA calls apply to the thread's current device, and several threads may use this device in turn.
  absl::Status Use() { return Check(cudaSetDevice(facts_.number), "cudaSetDevice"); }
  absl::Status Check(cudaError_t error, const std::string& what);

  const CudaDeviceOptions options_;
  const GpuFacts facts_;
  cudaStream_t stream_ = nullptr;
  bool captures_ = false, failed_ = false;
};

absl::Status CudaDevice::Check(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat("cuda:", facts_.number, ": ", what, ": ", cudaGetErrorString(error), " (",
                                           cudaGetErrorName(error), ")");
  cudaGetLastError();  // clears it, or a later call would return it
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

// A lost context answers every call with its error. No list of errors is complete: a GPU that falls off the bus has
// cudaErrorUnknown.
bool CudaDevice::has_failed() {
  if (failed_ || captures_) return failed_;
  size_t free_bytes = 0, bytes = 0;
  cudaError_t answer = cudaSetDevice(facts_.number);
  if (answer == cudaSuccess) answer = cudaMemGetInfo(&free_bytes, &bytes);
  cudaGetLastError();
  failed_ = answer != cudaSuccess;
  return failed_;
}

absl::Status CudaDevice::Launch(const KernelCall& call) {
  if (call.empty()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckSharedMemory(call, facts_));
  LS_RETURN_IF_ERROR(Use());
  if (call.shape.shared_bytes > kSharedBytesOfEveryKernel) {
    LS_RETURN_IF_ERROR(Check(cudaFuncSetAttribute(call.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  static_cast<int>(call.shape.shared_bytes)),
                             absl::StrCat("shared memory of kernel ", call.name)));
  }
  const GridSize& grid = call.shape.grid;
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(grid.x, grid.y, grid.z);
  configuration.blockDim = dim3(call.shape.threads);
  configuration.dynamicSmemBytes = call.shape.shared_bytes;
  configuration.stream = stream_;
  void* arguments[] = {const_cast<unsigned char*>(call.arguments)};
  return Check(cudaLaunchKernelExC(&configuration, call.function, arguments),
               absl::StrCat("to launch kernel ", call.name));
}

absl::StatusOr<std::unique_ptr<GpuGraph>> CudaDevice::Capture(const std::function<absl::Status()>& body) {
  cudaGraph_t recorded = nullptr;
  LS_RETURN_IF_ERROR(Use());
  options_.before_capture();
  absl::Status status =
      Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  if (status.ok()) {
    captures_ = true;
    status = body();
    captures_ = false;
    status.Update(Check(cudaStreamEndCapture(stream_, &recorded), "cudaStreamEndCapture"));
  }
  options_.after_capture();
  auto graph = std::make_unique<CudaGraph>();
  if (status.ok()) status = Check(cudaGraphInstantiate(&graph->executable, recorded, 0), "cudaGraphInstantiate");
  if (recorded != nullptr) cudaGraphDestroy(recorded);
  LS_RETURN_IF_ERROR(status);
  return graph;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuDevice>> MakeCudaDevice(const CudaDeviceOptions& options) {
  cudaDeviceProp properties = {};
  const cudaError_t error = cudaGetDeviceProperties(&properties, options.number);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return absl::UnavailableError(
        absl::StrCat("there is no GPU cuda:", options.number, " here: ", cudaGetErrorString(error)));
  }
  auto device = std::make_unique<CudaDevice>(
      options, GpuFacts{.name = properties.name,
                        .number = options.number,
                        .major = properties.major,
                        .minor = properties.minor,
                        .multiprocessors = properties.multiProcessorCount,
                        .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                        .max_shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin)});
  LS_RETURN_IF_ERROR(device->MakeStream());
  return device;
}

}  // namespace longshort::models
