// A graph of steps of one shape, and the memory that steps refer to. Thread: the worker's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/gpu_upload.h"
#include "models/language_model/gpu_step.h"

namespace longshort {

// What a step's work refers to on the device beside pages; that of graphs stays where it is.
struct StepMemory {
  explicit StepMemory(GpuDevice& device) : upload(device) {}

  // Queues the copy of a step's numbers.
  absl::Status Queue(const GpuStep& step) {
    const std::vector<int64_t>& numbers = step.plan.numbers;
    LS_ASSIGN_OR_RETURN(char* const host, upload.Begin(numbers.size() * sizeof(int64_t)));
    std::copy(numbers.begin(), numbers.end(), reinterpret_cast<int64_t*>(host));
    return upload.Queue();
  }
  int64_t* numbers() const { return upload.as<int64_t>(); }

  GpuUpload upload;
  GpuMemory partial_results;  // of single rows
};

// Of a worker's graphs together.
struct GraphMemoryBytes {
  int64_t numbers = 0, partial_results = 0, logits = 0;
};

struct StepGraph {
  StepShape shape;
  GpuStep step;                // of padding only: all steps of this shape have their arrays where it has them
  at::Tensor numbers, logits;  // in the memory of graphs
  std::unique_ptr<GpuGraph> graph;
};

}  // namespace longshort
