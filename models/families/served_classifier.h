// A classifier for serving: a network on each device that it was loaded for, and a runner for each worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/device/micro_batches.h"
#include "models/load_options.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "models/ops/layers/linear.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// The interface of an architecture's network to serving. Immutable, hence thread-safe.
class ServedNetwork {
 public:
  using Items = absl::Span<const ClassifierItem* const>;
  struct Output {
    at::Tensor rows;  // [items, ClassifierInfo::WidthOf(output)] float32
    int64_t multiply_adds = 0;
  };

  virtual ~ServedNetwork() = default;

  // Errors: INVALID_ARGUMENT with the index of the first item that cannot be in a batch of this network for `output`.
  virtual absl::Status Check(Items items, ClassifierOutput output) const = 0;

  // All functions below REQUIRE items that Check accepts.

  // The work of each item, and the desired work of a micro-batch, in the same unit.
  virtual std::vector<int64_t> Work(Items items) const = 0;
  virtual MicroBatchWork micro_batch_work() const = 0;
  // Runs a micro-batch on the CPU.
  virtual Output Run(Items items, ClassifierOutput output) const = 0;
  // Begins a whole batch on a GPU, and returns its multiply-adds. PrepareOn captures the graphs, once, before the first
  // batch. The network must then outlive `gpu`. Graphs compute logits, or features if there are no classes; other
  // outputs run without.
  virtual int64_t BeginOn(GpuItemAttention& gpu, Items items, ClassifierOutput output) const = 0;
  virtual absl::Status PrepareOn(GpuItemAttention& gpu) const = 0;

  // Whether products of bfloat16 numbers with AMX, or of int8 numbers, make it faster on CPUs.
  virtual bool GainsFromNarrowProducts() const { return true; }
  // Whether float32 panels (FloatPanels) make it faster on CPUs.
  virtual bool IsFasterInPanels() const { return false; }
  // A copy of the network on another device.
  virtual std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const = 0;
};

// Reads labels.txt, then calls `make` with the weights, without gradients and on one thread.
//   info        without precision, fingerprint and labels, which loading adds
//   head_width  width of the network's widest heads
// REQUIRES: CheckTensors succeeded for all tensors that `make` reads.
// Errors: UNIMPLEMENTED for a GPU in a build without GPU support; INVALID_ARGUMENT for labels.txt; INTERNAL for an
// exception of `make`; UNAVAILABLE if the weights cannot be read or are modified during loading. All name the file or
// directory.
absl::StatusOr<ClassifierWeights> LoadServedClassifier(
    ClassifierInfo info, int64_t head_width, const ModelDirectory& directory, const LoadOptions& options,
    const std::function<std::shared_ptr<const ServedNetwork>(const TensorSource& read)>& make);

}  // namespace longshort::models
