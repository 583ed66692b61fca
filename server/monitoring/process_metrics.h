// Metrics of the process, under the names that Prometheus' own client libraries use.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace longshort::server {

// Reads the values from Linux at each call, and leaves out unknown ones. Thread: any.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

// Single values. Thread: any.
double ProcessCpuSeconds();
double ResidentBytes();  // 0 if unknown

}  // namespace longshort::server
