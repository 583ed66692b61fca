#include "tests/models/gpu/false_cuda.h"

#include <cstdlib>
#include <string>

namespace longshort::models {

FalseCuda& TheFalseCuda() {
  static FalseCuda& cuda = *new FalseCuda;
  return cuda;
}

namespace {

cudaError_t Call(const char* name) {
  FalseCuda& cuda = TheFalseCuda();
  ++cuda.calls[name];
  if (cuda.sticky != cudaSuccess) return cuda.sticky;
  const auto error = cuda.errors.find(name);
  return error == cuda.errors.end() ? cudaSuccess : error->second;
}

// Some address, for handles.
template <typename Handle>
cudaError_t Make(const char* name, Handle* handle) {
  static char place;
  *handle = reinterpret_cast<Handle>(&place);
  return Call(name);
}

}  // namespace
}  // namespace longshort::models

using longshort::models::Call;
using longshort::models::Make;
using longshort::models::TheFalseCuda;

extern "C" {

const char* cudaGetErrorString(cudaError_t) { return "an error"; }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaErrorUnknown ? "cudaErrorUnknown" : "cudaError"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return Call("cudaSetDevice"); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = TheFalseCuda().properties;
  return Call("cudaGetDeviceProperties");
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* bytes) {
  *free_bytes = *bytes = TheFalseCuda().free_bytes;
  return Call("cudaMemGetInfo");
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const cudaError_t error = Call("cudaMalloc");
  if (error != cudaSuccess) return error;
  if (static_cast<int64_t>(bytes) > TheFalseCuda().free_bytes) return cudaErrorMemoryAllocation;
  *memory = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return Call("cudaMallocHost");
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return Call("cudaFree");
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return Call("cudaFreeHost");
}
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return Call("cudaMemcpyAsync");
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return Make("cudaStreamCreateWithFlags", stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return Call("cudaStreamDestroy"); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return Call("cudaStreamSynchronize"); }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return Make("cudaEventCreate", event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return Call("cudaEventDestroy"); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return Call("cudaEventRecord"); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return Call("cudaEventSynchronize"); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return Call("cudaEventElapsedTime");
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return Call("cudaFuncSetAttribute"); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) { return Call("cudaLaunchKernelExC"); }

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return Call("cudaStreamBeginCapture"); }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) { return Make("cudaStreamEndCapture", graph); }
// NOLINTNEXTLINE(google-runtime-int): CUDA's declaration
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph, cudaGraph_t, unsigned long long) {
  return Make("cudaGraphInstantiate", graph);
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return Call("cudaGraphDestroy"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return Call("cudaGraphExecDestroy"); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return Call("cudaGraphLaunch"); }

}  // extern "C"
