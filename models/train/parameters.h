// The tensors that a run trains: their initial values, and the threads that share them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "c10/core/thread_pool.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// A named tensor that a run trains or keeps.
struct NamedParameter {
  std::string name;  // as in model.safetensors
  at::Tensor value;  // float32; a leaf that requires gradients if it is trained
};

// The distribution of initial weights. Gains and running variances are 1, biases and running means 0, unless a
// distribution says otherwise; a map is a matrix or a convolution, of `inputs` inputs for one output.
enum class InitialWeights {
  // Maps are normal with 1/sqrt(inputs), embeddings and classifiers' position tables normal with 0.02.
  kScaled,
  // As in the official code for Long Range Arena: maps and their biases are uniform in +-1/sqrt(inputs), tables normal
  // with 0.02; CLS and the convolution of values are 0.
  kLongRangeArena,
  // As in the official language models: all but biases is normal with 0.02, gains around 1.
  kLanguageModel,
  // As in CvT's official code: matrices are normal with 0.02; convolutions and their biases are uniform in
  // +-1/sqrt(inputs).
  kCvt,
};

// Random initial weights, which `seed` determines. Running statistics and the frequencies of positions are not trained;
// all other tensors are.
std::vector<NamedParameter> InitialParameters(absl::Span<const TensorShape> tensors, uint64_t seed,
                                              InitialWeights distribution = InitialWeights::kScaled);

// Copies each value of `begin` into the parameter of the same name.
void Overwrite(const std::vector<NamedParameter>& begin, const std::vector<NamedParameter>& parameters);

// Copies the values that `file` has for these tensors into them. Errors: FAILED_PRECONDITION naming a tensor that is
// missing or has another shape, and then none has changed; those of reading.
absl::Status CopyStored(const SafetensorsFile& file, const std::vector<NamedParameter>& tensors);

// Returns a source that finds these tensors by name, without copies, so that gradients reach them.
TensorSource ByName(const std::vector<NamedParameter>& parameters);

// The threads that share a step's work. All use the same weights; each has its own gradients.
class ParameterShards final {
 public:
  ParameterShards(std::vector<NamedParameter> parameters, int64_t shards);

  int64_t size() const { return static_cast<int64_t>(shards_.size()); }
  // The weights of a shard. They alias the shared storage.
  const std::vector<NamedParameter>& of(int64_t shard) const { return shards_[shard]; }

  // Calls work(shard) for every shard: the first on the calling thread, the others on kept threads. Rethrows the first
  // exception of `work`, in the order of the shards, after all calls have returned.
  void Run(const std::function<void(int64_t shard)>& work);
  // Run, and then adds the shards' gradients to those of the weights, in the order of the shards.
  void RunStep(const std::function<void(int64_t shard)>& work);

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<std::vector<NamedParameter>> shards_;
  c10::ThreadPool threads_;  // they stay: a thread's end would return the memory that it freed to the system
};

}  // namespace longshort::models
