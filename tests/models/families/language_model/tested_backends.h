// The backends that the tests of the language model run on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/load_options.h"

namespace longshort::models {

struct TestedBackend {
  std::string name;  // of letters and digits
  WorkerDevice device;
  // As PrepareDecoder.
  std::function<PreparedDevice(Decoder decoder)> prepare;
};

TestedBackend OnDevice(std::string name, const WorkerDevice& device, const GpuBackends* gpus = nullptr);

// For INSTANTIATE_TEST_SUITE_P. Another backend is one more of these.
std::vector<TestedBackend> TestedBackends();
// The backends that are fast enough to read thousands of tokens in a test, and the others: the emulated GPU.
std::vector<TestedBackend> QuickBackends();
std::vector<TestedBackend> SlowBackends();

// The GPU of this program's tests: a chip in builds with CUDA, else the emulated one.
struct TestedGpu {
  WorkerDevice device;
  const GpuBackends* gpus = nullptr;  // null: there is none
};
TestedGpu GpuOfTests();

inline std::ostream& operator<<(std::ostream& out, const TestedBackend& backend) { return out << backend.name; }
inline std::string NameOf(const auto& info) { return info.param.name; }

// The weights of RandomDecoder, and a served model of them.
LanguageModelWeights RandomWeightsOn(const TestedBackend& backend, const LanguageModelConfig& config, uint64_t seed,
                                     at::ScalarType product_type = at::kFloat);
std::unique_ptr<LanguageModel> RandomModelOn(const TestedBackend& backend, const LanguageModelConfig& config,
                                             uint64_t seed, at::ScalarType product_type = at::kFloat);

}  // namespace longshort::models
