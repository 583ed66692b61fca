#include "server/options/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(ReadFile(path), &value)) return std::nullopt;
  return value;
}

// The process's group in one hierarchy, from /proc/self/cgroup lines "id:controllers:/path". v2 has no controllers.
std::string GroupPath(const std::string& groups, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    for (const absl::string_view name : absl::StrSplit(fields[1], ',')) {
      if (name == controller) return fields[2];
    }
  }
  return "/";
}

// "/a/b" -> "/a/b", "/a", "": the limits of all parent groups apply, too.
std::vector<std::string> GroupAndAbove(std::string group) {
  std::vector<std::string> groups;
  while (group.size() > 1) {
    groups.push_back(group);
    group.erase(group.rfind('/'));
  }
  groups.emplace_back();
  return groups;
}

int64_t CpusFromQuota(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return kUnlimited;
  return std::max<int64_t>(1, quota / period);
}

int64_t CgroupCpus(const std::string& root, const std::string& groups) {
  int64_t cpus = kUnlimited;
  for (const std::string& group : GroupAndAbove(GroupPath(groups, ""))) {
    const std::vector<std::string> fields = absl::StrSplit(
        ReadFile(absl::StrCat(root, "/sys/fs/cgroup", group, "/cpu.max")), absl::ByAnyChar(" \n"), absl::SkipEmpty());
    int64_t quota = 0, period = 0;
    if (fields.size() == 2 && absl::SimpleAtoi(fields[0], &quota) && absl::SimpleAtoi(fields[1], &period)) {
      cpus = std::min(cpus, CpusFromQuota(quota, period));
    }
  }
  for (const std::string& group : GroupAndAbove(GroupPath(groups, "cpu"))) {
    const std::string folder = absl::StrCat(root, "/sys/fs/cgroup/cpu", group);
    const int64_t quota = ReadNumber(folder + "/cpu.cfs_quota_us").value_or(-1);
    cpus = std::min(cpus, CpusFromQuota(quota, ReadNumber(folder + "/cpu.cfs_period_us").value_or(-1)));
  }
  return cpus;
}

int64_t CgroupMemory(const std::string& root, const std::string& groups) {
  int64_t bytes = kUnlimited;
  for (const std::string& group : GroupAndAbove(GroupPath(groups, ""))) {
    // Beyond memory.high the kernel slows the process down to a crawl, which ends as badly as beyond memory.max.
    for (const char* file : {"/memory.max", "/memory.high"}) {
      bytes = std::min(bytes, ReadNumber(absl::StrCat(root, "/sys/fs/cgroup", group, file)).value_or(kUnlimited));
    }
  }
  for (const std::string& group : GroupAndAbove(GroupPath(groups, "memory"))) {
    const std::string file = absl::StrCat(root, "/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes");
    bytes = std::min(bytes, ReadNumber(file).value_or(kUnlimited));
  }
  return bytes;
}

// From "MemTotal:  24000000 kB".
int64_t MachineMemory(const std::string& root) {
  for (const absl::string_view line : absl::StrSplit(ReadFile(root + "/proc/meminfo"), '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kibibytes = 0;
    if (fields.size() == 3 && fields[0] == "MemTotal:" && absl::SimpleAtoi(fields[1], &kibibytes))
      return kibibytes << 10;
  }
  return kUnlimited;
}

int64_t AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::thread::hardware_concurrency();
}

}  // namespace

MachineLimits ReadMachineLimits(const std::string& root) {
  const std::string groups = ReadFile(root + "/proc/self/cgroup");
  const int64_t memory = std::min(MachineMemory(root), CgroupMemory(root, groups));
  return {.cpus = std::max<int64_t>(1, std::min(AffinityCpus(), CgroupCpus(root, groups))),
          .memory_bytes = memory == kUnlimited ? 0 : memory};
}

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
