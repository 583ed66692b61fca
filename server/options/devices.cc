#include "server/options/devices.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr int kMaxWorkers = 64;
constexpr int kMaxGpus = 64;

absl::Status ReadCpu(const std::string& device, Devices& devices) {
  if (devices.cpu_workers > 0) return absl::InvalidArgumentError("cpu is listed twice");
  devices.cpu_workers = 1;
  if (device == "cpu") return absl::OkStatus();
  if (!absl::SimpleAtoi(absl::StripPrefix(device, "cpu:"), &devices.cpu_workers) || devices.cpu_workers < 1 ||
      devices.cpu_workers > kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("the number of workers in ", device, " must be 1 to ", kMaxWorkers));
  }
  return absl::OkStatus();
}

// `name`: the kind's name in the list.
absl::Status ReadGpu(const std::string& device, const std::string& name, models::DeviceKind kind, Devices& devices) {
  int number = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(device, name + ":"), &number) || number < 0 || number >= kMaxGpus) {
    return absl::InvalidArgumentError(absl::StrCat("'", device, "' is not a GPU; write ", name,
                                                   ":N, where N is the GPU's number, 0 to ", kMaxGpus - 1));
  }
  if (!devices.gpus.empty() && devices.gpu_kind != kind) {
    return absl::InvalidArgumentError(absl::StrCat("'", device, "' is a GPU of another kind than those before it"));
  }
  if (std::find(devices.gpus.begin(), devices.gpus.end(), number) != devices.gpus.end()) {
    return absl::InvalidArgumentError(absl::StrCat(device, " is listed twice"));
  }
  devices.gpu_kind = kind;
  devices.gpus.push_back(number);
  return absl::OkStatus();
}

bool IsOfKind(const std::string& device, const std::string& name) {
  return device == name || absl::StartsWith(device, name + ":");
}

}  // namespace

absl::StatusOr<Devices> ParseDevices(const std::string& text) {
  Devices devices;
  const std::vector<std::string> list = absl::StrSplit(text, ',');
  for (const std::string& device : list) {
    if (IsOfKind(device, "cpu")) {
      LS_RETURN_IF_ERROR(ReadCpu(device, devices));
    } else if (IsOfKind(device, "cuda")) {
      LS_RETURN_IF_ERROR(ReadGpu(device, "cuda", models::DeviceKind::kCuda, devices));
    } else if (IsOfKind(device, "emulated")) {
      LS_RETURN_IF_ERROR(ReadGpu(device, "emulated", models::DeviceKind::kEmulated, devices));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no device '", device, "'; write cpu, cpu:N for N workers, or cuda:N for GPU N"));
    }
  }
  return devices;
}

absl::StatusOr<Devices> ParseServedDevices(const std::string& text, const MachineLimits& machine) {
  LS_ASSIGN_OR_RETURN(Devices devices, ParseDevices(text));
  for (const int number : devices.gpus) {
    const std::string name = models::DeviceName({.kind = devices.gpu_kind, .index = number});
    const char* const instead = devices.cpu_workers > 0 ? "leave it out" : "write cpu, or cpu:N for N workers";
    if (!machine.gpus.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is a GPU, and this build serves on the CPU only; ", instead));
    }
    const models::Gpus& gpus = *machine.gpus;
    const auto count = static_cast<int>(gpus.memory_bytes.size());
    if (devices.gpu_kind != gpus.kind || number >= count) {
      const std::string last = models::DeviceName({.kind = gpus.kind, .index = count - 1});
      return absl::InvalidArgumentError(absl::StrCat("there is no ", name, "; the GPUs of this machine are ",
                                                     count == 0 ? "none" : absl::StrCat(count, ", up to ", last), "; ",
                                                     instead));
    }
  }
  return devices;
}

int64_t ThreadsPerWorker(int64_t threads, const Devices& devices) {
  return std::max<int64_t>(1, threads / std::max(1, devices.cpu_workers));
}

std::vector<models::WorkerDevice> WorkersOn(const Devices& devices, int64_t threads) {
  std::vector<models::WorkerDevice> workers =
      models::CpuWorkers(devices.cpu_workers, static_cast<int>(ThreadsPerWorker(threads, devices)));
  for (const int number : devices.gpus) workers.push_back({.kind = devices.gpu_kind, .index = number});
  return workers;
}

}  // namespace longshort::server
