#include "tests/models/language_model/tested_backends.h"

#include <memory>
#include <utility>

#include "models/language_model/backends.h"
#if defined(LONGSHORT_CUDA_GPU)
#include "models/loading/cuda_backends.h"
#elif defined(LONGSHORT_EMULATED_GPU)
#include "tests/models/language_model/emulated_backends.h"
#endif
#include "tests/models/language_model/random_decoder.h"

namespace longshort {
namespace {

TestedBackend OnDevice(std::string name, const WorkerDevice& device, const GpuBackends* gpus = nullptr) {
  return {.name = std::move(name), .device = device, .make = [device, gpus](Decoder& decoder) {
            return MakeBackend(decoder, device, gpus).value();
          }};
}

}  // namespace

std::vector<TestedBackend> QuickBackends() {
  std::vector<TestedBackend> backends = {OnDevice("Cpu", {.kind = DeviceKind::kCpu, .threads = 1})};
#if defined(LONGSHORT_CUDA_GPU)
  static const auto cuda = MakeCudaBackends(std::make_shared<GpuLoss>());
  backends.push_back(OnDevice("Cuda", {.kind = DeviceKind::kCuda}, cuda.get()));
#endif
  return backends;
}

std::vector<TestedBackend> TestedBackends() {
  std::vector<TestedBackend> backends = QuickBackends();
#if defined(LONGSHORT_EMULATED_GPU) && !defined(LONGSHORT_CUDA_GPU)
  static const EmulatedBackends emulated;
  backends.push_back(OnDevice("EmulatedGpu", {.kind = DeviceKind::kEmulated}, &emulated));
#endif
  return backends;
}

std::unique_ptr<TransformerLs> RandomModelOn(const TestedBackend& backend, const LanguageModelConfig& config,
                                             uint64_t seed, at::ScalarType product_type) {
  Decoder decoder = RandomDecoder(config, seed, product_type);
  std::unique_ptr<LanguageModelBackend> made = backend.make(decoder);
  return std::make_unique<TransformerLs>(std::move(decoder), InfoOf(config), backend.device, std::move(made));
}

}  // namespace longshort
