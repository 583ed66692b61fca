// How busy the server is, for balancers that weigh servers by what their answers say: a serialized
// xds.data.orca.v3.OrcaLoadReport, the value of the trailing metadata `endpoint-load-metrics-bin`.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "server/monitoring/metric_families.h"

namespace longshort::server {

class LoadReport final {
 public:
  // What the shares are shares of.
  struct Capacity {
    int64_t cpus = 1;
    int64_t memory_bytes = 0;  // 0 if nobody knows: then no share of it is told
    int64_t workers = 1;       // of each model
  };

  // `families`, which must outlive the report, say what has been done.
  LoadReport(const MetricFamilies& families, const Capacity& capacity);

  // As things stood at most a quarter of a second ago, over the time since they were looked at before. Whoever asks
  // first after that looks; for the others it is a copy.
  std::string Get();

 private:
  // All that was done until a moment.
  struct Totals {
    absl::Time at;
    double cpu_seconds = 0;
    double calls = 0;
    double failed_calls = 0;                     // by the server's fault or for want of room
    std::map<std::string, double> busy_seconds;  // of a model's workers, together
  };

  Totals Look() const;
  std::string Serialize(const Totals& before, const Totals& now) const;

  const MetricFamilies& families_;
  const Capacity capacity_;

  std::mutex mutex_;  // guards what follows
  absl::Time look_again_;
  Totals last_;
  std::string bytes_;
};

}  // namespace longshort::server
