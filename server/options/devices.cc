#include "server/options/devices.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace longshort {
namespace {

constexpr int kMostWorkers = 64;

}  // namespace

absl::StatusOr<Devices> ParseDevices(const std::string& text) {
  Devices devices;
  bool has_cpu = false;
  const std::vector<std::string> list = absl::StrSplit(text, ',');
  for (const std::string& device : list) {
    if (device == "cuda" || absl::StartsWith(device, "cuda:")) {
      return absl::InvalidArgumentError("this build serves on cpu only");
    }
    if (device != "cpu" && !absl::StartsWith(device, "cpu:")) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no device '", device, "'; write cpu, or cpu:N for N workers"));
    }
    if (has_cpu) return absl::InvalidArgumentError("cpu is there twice");
    has_cpu = true;
    if (device == "cpu") continue;
    if (!absl::SimpleAtoi(absl::StripPrefix(device, "cpu:"), &devices.cpu_workers) || devices.cpu_workers < 1 ||
        devices.cpu_workers > kMostWorkers) {
      return absl::InvalidArgumentError(absl::StrCat("the count of ", device, " must be 1 to ", kMostWorkers));
    }
  }
  return devices;
}

int64_t ThreadsPerWorker(int64_t threads, const Devices& devices) {
  return std::max<int64_t>(1, threads / devices.cpu_workers);
}

}  // namespace longshort
