// What any program can tell Prometheus of its process, under the names that Prometheus' own client libraries give.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace longshort {

// Thread: any. Read from the system (Linux) each time; what it does not tell is left out.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace longshort
