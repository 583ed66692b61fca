#include "server/monitoring/load_report.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_order.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {
namespace {

constexpr absl::Duration kUpdateInterval = absl::Milliseconds(250);

// Fields of OrcaLoadReport, all of them doubles.
constexpr int kCpuUtilization = 1;
constexpr int kMemoryUtilization = 2;
constexpr int kCallsPerSecond = 6;
constexpr int kErrorsPerSecond = 7;
constexpr int kApplicationUtilization = 9;

// The protobuf wire format: a tag of wire type 1, then the number, its lowest byte first.
void AddDouble(int field, double value, std::string& message) {
  if (value == 0) return;  // the value of an absent field
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  message.push_back(static_cast<char>(field << 3 | 1));
  char bytes[sizeof(bits)];
  WriteNumber(bits, ByteOrder::kLittleEndian, sizeof(bits), bytes);
  message.append(bytes, sizeof(bytes));
}

std::string LabelOf(const prometheus::ClientMetric& metric, std::string_view name) {
  for (const prometheus::ClientMetric::Label& label : metric.label) {
    if (label.name == name) return label.value;
  }
  return "";
}

// Whether another server might have answered a call with this code.
bool IsServersFailure(const std::string& code) {
  static const auto& codes = *new std::set<std::string>(
      {"UNKNOWN", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"});
  return codes.count(code) > 0;
}

}  // namespace

LoadReport::LoadReport(const MetricFamilies& families, const Capacity& capacity, const Clock& clock)
    : families_(families),
      capacity_(capacity),
      clock_(clock),
      next_update_(clock.Now() + kUpdateInterval),
      last_(ReadTotals()),
      bytes_(Serialize(last_, last_)) {}

std::string LoadReport::Get() {
  MutexLock lock(mutex_);
  if (const absl::Time now = clock_.Now(); now >= next_update_) {
    next_update_ = now + kUpdateInterval;
    lock.Unlock();  // other callers get the previous report meanwhile
    Totals totals = ReadTotals();
    lock.Lock();
    bytes_ = Serialize(last_, totals);
    last_ = std::move(totals);
  }
  return bytes_;
}

LoadReport::Totals LoadReport::ReadTotals() const {
  Totals totals{.at = clock_.Now(), .cpu_seconds = ProcessCpuSeconds(), .models = {}};
  for (const prometheus::MetricFamily& family : families_.requests.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      totals.calls += metric.counter.value;
      if (IsServersFailure(LabelOf(metric, "code"))) totals.failed_calls += metric.counter.value;
    }
  }
  for (const auto* durations : {&families_.step_duration, &families_.batch_duration}) {
    for (const prometheus::MetricFamily& family : durations->Collect()) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        totals.models[LabelOf(metric, "model")].busy_seconds += metric.histogram.sample_sum;
      }
    }
  }
  for (const prometheus::MetricFamily& family : families_.workers.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      totals.models[LabelOf(metric, "model")].workers += metric.gauge.value;
    }
  }
  return totals;
}

std::string LoadReport::Serialize(const Totals& before, const Totals& now) const {
  const double seconds = std::max(absl::ToDoubleSeconds(now.at - before.at), 1e-3);
  double busiest = 0;
  for (const auto& [name, model] : now.models) {
    const auto was = before.models.find(name);
    const double busy = model.busy_seconds - (was == before.models.end() ? 0 : was->second.busy_seconds);
    busiest = std::max(busiest, busy / std::max(model.workers, 1.0));
  }
  std::string message;
  AddDouble(kCpuUtilization, (now.cpu_seconds - before.cpu_seconds) / seconds / static_cast<double>(capacity_.cpus),
            message);
  if (capacity_.memory_bytes > 0) {
    AddDouble(kMemoryUtilization, ResidentBytes() / static_cast<double>(capacity_.memory_bytes), message);
  }
  // An unloaded version's counts are gone, so a total may decrease.
  AddDouble(kCallsPerSecond, std::max(0.0, now.calls - before.calls) / seconds, message);
  AddDouble(kErrorsPerSecond, std::max(0.0, now.failed_calls - before.failed_calls) / seconds, message);
  AddDouble(kApplicationUtilization, busiest / seconds, message);
  return message;
}

}  // namespace longshort::server
