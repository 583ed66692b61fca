#include "tests/models/language_model/tested_backends.h"

#include <utility>

#include "models/language_model/loading/backends.h"
#include "tests/models/language_model/random_decoder.h"

namespace longshort {
namespace {

TestedBackend OnDevice(std::string name, const WorkerDevice& device) {
  return {.name = std::move(name), .device = device, .make = [device](Decoder& decoder) {
            return MakeBackend(decoder, device).value();
          }};
}

}  // namespace

std::vector<TestedBackend> TestedBackends() { return {OnDevice("Cpu", {.kind = DeviceKind::kCpu, .threads = 1})}; }

std::unique_ptr<TransformerLs> RandomModelOn(const TestedBackend& backend, const LanguageModelConfig& config,
                                             uint64_t seed, at::ScalarType product_type) {
  Decoder decoder = RandomDecoder(config, seed, product_type);
  std::unique_ptr<LanguageModelBackend> made = backend.make(decoder);
  return std::make_unique<TransformerLs>(std::move(decoder), InfoOf(config), backend.device, std::move(made));
}

}  // namespace longshort
