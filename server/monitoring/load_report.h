// The server's load, for load balancers that weigh servers by it: a serialized xds.data.orca.v3.OrcaLoadReport, the
// value of the trailing metadata `endpoint-load-metrics-bin`.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/monitoring/metric_families.h"

namespace longshort::server {

class LoadReport final {
 public:
  // The capacity that utilizations refer to.
  struct Capacity {
    int64_t cpus = 1;
    int64_t memory_bytes = 0;  // 0 if unknown: then its utilization is not reported
  };

  // Computes the load from `families`, which must outlive the report, like `clock`.
  LoadReport(const MetricFamilies& families, const Capacity& capacity, const Clock& clock = SystemClock());

  // The load, at most a quarter of a second old, over the time since the previous update. The first caller after that
  // updates it; the others get a copy.
  std::string Get();

 private:
  struct OfModel {
    double busy_seconds = 0;  // over all workers
    double workers = 0;
  };
  // Totals up to a moment.
  struct Totals {
    absl::Time at;
    double cpu_seconds = 0;
    double calls = 0;
    double failed_calls = 0;  // server errors and overload
    std::map<std::string, OfModel> models;
  };

  Totals ReadTotals() const;
  std::string Serialize(const Totals& before, const Totals& now) const;

  const MetricFamilies& families_;
  const Capacity capacity_;
  const Clock& clock_;

  Mutex mutex_;
  absl::Time next_update_ ABSL_GUARDED_BY(mutex_);
  Totals last_ ABSL_GUARDED_BY(mutex_);
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::server
