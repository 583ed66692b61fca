// Loads a Transformer-LS language model for serving.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"

namespace longshort {

class GpuBackends;

struct LanguageModelOptions {
  // "fp32", or "bf16": weights and cache pages in bfloat16, products where the processor has them; sums, norms and
  // softmaxes stay float32.
  std::string precision = "fp32";
  // Threads that loading and one step use; 0 takes one for each core.
  int threads = 0;
  // Devices that the model is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // For the GPUs among them; null in a build for the CPU only.
  const GpuBackends* gpus = nullptr;
};

// Loads config.json and model.safetensors of a model directory.
// Errors: those of OpenModelDirectory, ParseLanguageModelConfig, CheckTensors and TensorReader; INVALID_ARGUMENT for
// another precision; those of MakeBackend; INTERNAL if the library fails.
absl::StatusOr<std::unique_ptr<LanguageModel>> LoadLanguageModel(const std::string& directory,
                                                                 const LanguageModelOptions& options);
absl::StatusOr<std::unique_ptr<LanguageModel>> LoadLanguageModel(const ModelDirectory& directory,
                                                                 const LanguageModelOptions& options);

// The tokenizer that belongs to a model directory; null where config.json says "none".
// Errors: INVALID_ARGUMENT if vocabulary.txt is missing or broken.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelDirectory& directory);

}  // namespace longshort
