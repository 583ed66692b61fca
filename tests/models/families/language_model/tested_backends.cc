#include "tests/models/families/language_model/tested_backends.h"

#include <memory>
#include <utility>

#include "models/device/gpu_device.h"
#include "models/families/language_model/backend.h"
#if defined(LONGSHORT_CUDA_GPU)
#include "models/load_options.h"
#elif defined(LONGSHORT_EMULATED_GPU)
#include "tests/models/families/language_model/emulated_backends.h"
#endif
#include "tests/models/families/language_model/random_decoder.h"

namespace longshort::models {

TestedBackend OnDevice(std::string name, const WorkerDevice& device, const GpuBackends* gpus) {
  return {.name = std::move(name), .device = device, .prepare = [device, gpus](Decoder decoder) {
            return PrepareDecoder(std::move(decoder), device, gpus).value();
          }};
}

TestedGpu GpuOfTests() {
#if defined(LONGSHORT_CUDA_GPU)
  static const auto cuda = MakeCudaBackends(std::make_shared<GpuLoss>());
  return {.device = {.kind = DeviceKind::kCuda}, .gpus = cuda.get()};
#elif defined(LONGSHORT_EMULATED_GPU)
  static const EmulatedBackends emulated;
  return {.device = {.kind = DeviceKind::kEmulated}, .gpus = &emulated};
#else
  return {};
#endif
}

std::vector<TestedBackend> QuickBackends() {
  std::vector<TestedBackend> backends = {OnDevice("Cpu", {.kind = DeviceKind::kCpu, .threads = 1})};
  const TestedGpu gpu = GpuOfTests();
  if (gpu.device.kind == DeviceKind::kCuda) backends.push_back(OnDevice("Cuda", gpu.device, gpu.gpus));
  return backends;
}

std::vector<TestedBackend> SlowBackends() {
  const TestedGpu gpu = GpuOfTests();
  if (gpu.device.kind != DeviceKind::kEmulated) return {};
  return {OnDevice("EmulatedGpu", gpu.device, gpu.gpus)};
}

std::vector<TestedBackend> TestedBackends() {
  std::vector<TestedBackend> backends = QuickBackends();
  for (TestedBackend& slow : SlowBackends()) backends.push_back(std::move(slow));
  return backends;
}

LanguageModelWeights RandomWeightsOn(const TestedBackend& backend, const LanguageModelConfig& config, uint64_t seed,
                                     at::ScalarType product_type) {
  PreparedDevice prepared = backend.prepare(RandomDecoder(config, seed, product_type));
  return {.places = {PlaceOf(InfoOf(config), backend.device, std::move(prepared))}};
}

std::unique_ptr<LanguageModel> RandomModelOn(const TestedBackend& backend, const LanguageModelConfig& config,
                                             uint64_t seed, at::ScalarType product_type) {
  return RandomWeightsOn(backend, config, seed, product_type).NewReplica(backend.device).value();
}

}  // namespace longshort::models
