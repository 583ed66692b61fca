// The tensors that a run trains: their first values, and the threads that share them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/layers/named_tensors.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// A trained tensor, or another that a run keeps, under its name.
struct NamedParameter {
  std::string name;  // as in model.safetensors
  at::Tensor value;  // float32; a leaf that collects gradients if it is trained
};

// Random weights, for training from nothing: matrices and kernels normal with deviation 1/sqrt(inputs of one output),
// embeddings and position tables of classifiers normal with deviation 0.02, gains and running variances 1, biases and
// running means 0. `seed` decides every value. All but the running statistics and the positions' frequencies are
// trained.
std::vector<NamedParameter> InitialParameters(absl::Span<const TensorShape> tensors, uint64_t seed);

// Finds these very tensors by their names, so that gradients reach them.
TensorSource ByName(const std::vector<NamedParameter>& parameters);

// The threads that share a step's work: all compute with the same weights, each with gradients of its own.
class ParameterShards final {
 public:
  ParameterShards(std::vector<NamedParameter> parameters, int64_t shards);

  int64_t size() const { return static_cast<int64_t>(shards_.size()); }
  // The weights as a shard sees them: their storage, no copy.
  const std::vector<NamedParameter>& of(int64_t shard) const { return shards_[shard]; }

  // Calls work(shard) for every shard, each in a thread of its own, and then adds the gradients that they left to those
  // of the weights, shard by shard. What `work` throws is thrown here, after all have ended.
  void Run(const std::function<void(int64_t shard)>& work);

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<std::vector<NamedParameter>> shards_;
};

}  // namespace longshort::models
