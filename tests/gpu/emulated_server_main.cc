// longshort-server with emulated GPUs: --devices=emulated:N. For tests; never installed.
//
// The environment variable LONGSHORT_DEVICE_FAULT injects a fault, as "lost=N", "error=N" or "memory=N": the device of
// the first worker fails at its N-th call. "lost=N replays" counts runs of graphs instead: loading runs each
// once. "@K" behind it names the device that is opened after K others instead. LONGSHORT_FAULTS lets models fail, on
// any device (tests/faults/faulty_models.h).

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/lifecycle/run.h"
#include "tests/faults/loader_with_faults.h"
#include "tests/models/families/language_model/emulated_backends.h"

namespace longshort {
namespace {

constexpr int64_t kMemoryBytes = int64_t{256} << 20;

struct PlannedFault {
  models::DeviceFault fault = models::DeviceFault::kError;
  int64_t calls = 0;
  bool are_replays = false;
  int device = 0;
};

// Nothing if the text is no fault.
std::optional<PlannedFault> ParseFault(const std::string& text) {
  const std::pair<std::string, std::string> place = absl::StrSplit(text, absl::MaxSplits('@', 1));
  const std::pair<std::string, std::string> parts = absl::StrSplit(place.first, absl::MaxSplits('=', 1));
  PlannedFault planned;
  absl::string_view calls = parts.second;
  planned.are_replays = absl::ConsumeSuffix(&calls, " replays");
  if (!absl::SimpleAtoi(calls, &planned.calls)) return std::nullopt;
  if (!place.second.empty() && !absl::SimpleAtoi(place.second, &planned.device)) return std::nullopt;
  if (parts.first == "lost") {
    planned.fault = models::DeviceFault::kLost;
  } else if (parts.first == "memory") {
    planned.fault = models::DeviceFault::kOutOfMemory;
  } else if (parts.first != "error") {
    return std::nullopt;
  }
  return planned;
}

int Run(const std::vector<std::string>& arguments, const std::optional<PlannedFault>& planned) {
  const server::GpusOfBuild gpus = {.find = [] {
    return models::Gpus{.kind = models::DeviceKind::kEmulated,
                        .memory_bytes = std::vector<int64_t>(models::kEmulatedGpus, kMemoryBytes)};
  }};
  std::atomic<int> opened = 0;
  const models::EmulatedBackends backends(
      {.memory_bytes = kMemoryBytes},
      [&](models::EmulatedDevice& device) {
        if (!planned.has_value() || opened++ != planned->device) return;
        if (planned->are_replays) {
          device.FailAfterReplays(planned->calls, planned->fault);
        } else {
          device.FailAfter(planned->calls, planned->fault);
        }
      },
      gpus.loss);
  const auto factory = WithFaultsOfEnvironment(
      [&backends](const server::ServerOptions& options) { return server::MakeModelLoader(options, &backends); });
  if (!factory.ok()) {
    std::cerr << factory.status().message() << "\n";
    return 1;
  }
  return server::RunServer(arguments, *factory, gpus);
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const char* const text = std::getenv("LONGSHORT_DEVICE_FAULT");
  const auto planned = text == nullptr ? std::nullopt : longshort::ParseFault(text);
  if (text != nullptr && !planned.has_value()) {
    std::cerr << "LONGSHORT_DEVICE_FAULT is '" << text
              << "'; write lost=N, error=N or memory=N, ' replays' behind it for runs of graphs, and @K for another "
                 "device\n";
    return 1;
  }
  return longshort::Run({argv + 1, argv + argc}, planned);
}
