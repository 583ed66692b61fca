// A classifier as it is served: a network on each of the devices that it was loaded for, and a runner for each worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/attention/gpu_item_attention.h"
#include "models/classifier.h"
#include "models/layers/linear.h"
#include "models/layers/micro_batches.h"
#include "models/layers/named_tensors.h"
#include "models/load_options.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// What serving needs of an architecture's network. Immutable: any thread may use it.
class ServedNetwork {
 public:
  using Items = absl::Span<const ClassifierItem* const>;
  struct Output {
    at::Tensor logits;  // [items, classes] float32
    int64_t multiply_adds = 0;
  };

  virtual ~ServedNetwork() = default;

  // Errors: INVALID_ARGUMENT for items that are no batch of this network, with the index of the first wrong one.
  virtual absl::Status Check(Items items) const = 0;

  // The rest REQUIRES items that Check accepts.

  // How much work each item is, and a micro-batch should be, in one unit.
  virtual std::vector<int64_t> Work(Items items) const = 0;
  virtual MicroBatchWork micro_batch_work() const = 0;
  // A micro-batch on the CPU.
  virtual Output Run(Items items) const = 0;
  // A whole batch on a GPU. Makes its graphs there, once, before: then the network must outlive `gpu`.
  virtual ClassifierResult RunOn(GpuItemAttention& gpu, Items items) const = 0;
  virtual absl::Status PrepareOn(GpuItemAttention& gpu) const = 0;

  // The same network elsewhere.
  virtual std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const = 0;
};

// Reads labels.txt, then runs `make` with the weights as loading code: without gradients, on one thread.
//   info        without what loading adds: precision, fingerprint and labels
//   head_width  of the widest heads of the network
// REQUIRES: CheckTensors has found what `make` asks for.
// Errors: UNIMPLEMENTED for a GPU where there are none; INVALID_ARGUMENT for
// labels.txt; INTERNAL for what `make` throws; UNAVAILABLE for weights that cannot be read or are written to meanwhile;
// each names the file or directory.
absl::StatusOr<ClassifierWeights> LoadServedClassifier(
    ClassifierInfo info, int64_t head_width, const ModelDirectory& directory, const LoadOptions& options,
    const std::function<std::shared_ptr<const ServedNetwork>(const TensorSource& read)>& make);

}  // namespace longshort::models
