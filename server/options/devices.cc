#include "server/options/devices.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr int kMostWorkers = 64;
constexpr int kMostGpus = 64;

absl::Status ReadCpu(const std::string& device, Devices& devices) {
  if (devices.cpu_workers > 0) return absl::InvalidArgumentError("cpu is there twice");
  devices.cpu_workers = 1;
  if (device == "cpu") return absl::OkStatus();
  if (!absl::SimpleAtoi(absl::StripPrefix(device, "cpu:"), &devices.cpu_workers) || devices.cpu_workers < 1 ||
      devices.cpu_workers > kMostWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("the count of ", device, " must be 1 to ", kMostWorkers));
  }
  return absl::OkStatus();
}

absl::Status ReadCuda(const std::string& device, Devices& devices) {
  int number = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(device, "cuda:"), &number) || number < 0 || number >= kMostGpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", device, "' names no GPU; write cuda:N, where N is its number, 0 to ", kMostGpus - 1));
  }
  if (std::find(devices.cuda.begin(), devices.cuda.end(), number) != devices.cuda.end()) {
    return absl::InvalidArgumentError(absl::StrCat("cuda:", number, " is there twice"));
  }
  devices.cuda.push_back(number);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Devices> ParseDevices(const std::string& text) {
  Devices devices;
  const std::vector<std::string> list = absl::StrSplit(text, ',');
  for (const std::string& device : list) {
    if (device == "cpu" || absl::StartsWith(device, "cpu:")) {
      LS_RETURN_IF_ERROR(ReadCpu(device, devices));
    } else if (device == "cuda" || absl::StartsWith(device, "cuda:")) {
      LS_RETURN_IF_ERROR(ReadCuda(device, devices));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no device '", device, "'; write cpu, cpu:N for N workers, or cuda:N for the GPU of that number"));
    }
  }
  return devices;
}

absl::StatusOr<Devices> ParseServedDevices(const std::string& text) {
  LS_ASSIGN_OR_RETURN(Devices devices, ParseDevices(text));
  if (devices.cuda.empty()) return devices;
  const char* const instead = devices.cpu_workers > 0 ? "leave it out" : "write cpu, or cpu:N for N workers";
  return absl::InvalidArgumentError(
      absl::StrCat("cuda:", devices.cuda.front(), " is a GPU, and this build serves on the CPU only; ", instead));
}

int64_t ThreadsPerWorker(int64_t threads, const Devices& devices) {
  return std::max<int64_t>(1, threads / std::max(1, devices.cpu_workers));
}

std::vector<WorkerDevice> WorkersOn(const Devices& devices, int64_t threads) {
  std::vector<WorkerDevice> workers =
      CpuWorkers(devices.cpu_workers, static_cast<int>(ThreadsPerWorker(threads, devices)));
  for (const int number : devices.cuda) workers.push_back({.kind = DeviceKind::kCuda, .index = number});
  return workers;
}

}  // namespace longshort
