// What any program can tell Prometheus of its process, under the names that Prometheus' own client libraries give.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace longshort::server {

// Read from the system (Linux) each time; what it does not tell is left out. Thread: any.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

// Two of them alone. Thread: any.
double ProcessCpuSeconds();
double ResidentBytes();  // 0 if the system does not tell

}  // namespace longshort::server
