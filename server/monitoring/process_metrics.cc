#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

void Add(const char* name, const char* help, prometheus::MetricType type, double value, Families& families) {
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  families.push_back({.name = name, .help = help, .type = type, .metric = {metric}});
}

void AddGauge(const char* name, const char* help, double value, Families& families) {
  Add(name, help, prometheus::MetricType::Gauge, value, families);
}

// Bytes; both 0 if unknown.
struct Memory {
  double all = 0;
  double resident = 0;
};

Memory ReadMemory() {
  std::ifstream pages("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(pages >> all >> resident)) return {};
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  return {.all = all * page_bytes, .resident = resident * page_bytes};
}

void AddMemory(Families& families) {
  const Memory memory = ReadMemory();
  if (memory.all == 0) return;
  AddGauge("process_virtual_memory_bytes", "Virtual memory size", memory.all, families);
  AddGauge("process_resident_memory_bytes", "Resident memory size", memory.resident, families);
}

void AddDescriptors(Families& families) {
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (!error) {
    const auto count = std::distance(begin(open), end(open)) - 1;  // without the iterator's own descriptor
    AddGauge("process_open_fds", "Open file descriptors", static_cast<double>(count), families);
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    AddGauge("process_max_fds", "Maximum number of open file descriptors", static_cast<double>(limit.rlim_cur),
             families);
  }
}

// Reads a system clock, in seconds.
double Now(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Unix time of the process's start; 0 if unknown.
double StartTime() {
  constexpr int kNameField = 2, kStartField = 22;  // of /proc/self/stat, counted from 1
  std::ifstream file("/proc/self/stat");
  std::string line, field;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));  // the name may have spaces in it
  for (int i = kNameField; i < kStartField; ++i) fields >> field;
  double ticks = 0;  // since the machine booted
  if (!fields || !absl::SimpleAtod(field, &ticks)) return 0;
  const double start = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return Now(CLOCK_REALTIME) - Now(CLOCK_BOOTTIME) + start;
}

}  // namespace

double ProcessCpuSeconds() { return Now(CLOCK_PROCESS_CPUTIME_ID); }

double ResidentBytes() { return ReadMemory().resident; }

Families CollectProcessMetrics() {
  Families families;
  Add("process_cpu_seconds_total", "User and system CPU time", prometheus::MetricType::Counter, ProcessCpuSeconds(),
      families);
  AddMemory(families);
  AddDescriptors(families);
  static const double start = StartTime();  // computed once, so that it does not vary
  if (start != 0) AddGauge("process_start_time_seconds", "Start time of the process, Unix time", start, families);
  return families;
}

}  // namespace longshort::server
