// A false CUDA runtime, which the CUDA device's test links instead of CUDA's: calls succeed unless the test says so.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <string>

namespace longshort::models {

struct FalseCuda {
  std::map<std::string, cudaError_t> errors;  // by the call's name, until it is erased
  cudaError_t sticky = cudaSuccess;           // of a lost context: every call returns it
  int64_t free_bytes = int64_t{1} << 30;
  cudaDeviceProp properties = {};
  std::map<std::string, int> calls;  // so far
};

// The process has one. Thread: the test's.
FalseCuda& TheFalseCuda();

}  // namespace longshort::models
