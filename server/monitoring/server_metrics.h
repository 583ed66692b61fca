// What the server tells Prometheus. Names are a contract with dashboards; labels are bounded: RPCs and gRPC codes are
// few, a model's name is a label only if such a model is served, and of identities as many as AccessControl gives
// labels.
//
// Thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/monitoring/metric_families.h"
#include "server/monitoring/version_series.h"

namespace longshort::server {

// Why spans were not exported.
enum class SpanLoss {
  kQueueFull,  // too many waited for the collector
  kCallLimit,  // their call had too many
  kFailed,     // the collector did not take them, however often they were tried
  kRejected,   // the collector said that it does not want them
};

class ServerMetrics {
 public:
  // `latency_buckets`: upper bounds of all latency histograms, seconds, rising.
  explicit ServerMetrics(std::vector<double> latency_buckets);
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // What a call asked for, and of which model: "" and 0 for calls that name no served model.
  struct Asked {
    std::string rpc;
    std::string model;
    int64_t version = 0;
  };
  // One call has ended. Versions that do not serve (SetModelLoadDuration, ForgetModel) share one label, "".
  void CountRequest(const Asked& asked, absl::StatusCode code, absl::Duration duration);

  // The call was of this identity (Identity::metric_label), and this is what it was given.
  void CountIdentity(const std::string& label, absl::StatusCode code, int64_t tokens);
  void CountTokenFileFailure() { families_.token_file_failures.Increment(); }

  // There were no descriptors for so many connections.
  void CountRefusedConnections(int64_t connections) {
    families_.refused_connections.Increment(static_cast<double>(connections));
  }

  // 0 if it is not known.
  void SetMemoryLimit(int64_t bytes) { families_.memory_limit.Set(static_cast<double>(bytes)); }

  // So many gRPC connections are open.
  void SetOpenConnections(int64_t connections) { families_.open_connections.Set(static_cast<double>(connections)); }
  // A gRPC connection was closed because of what its client did: one of a few reasons.
  void CountClosedConnection(const std::string& reason) {
    families_.closed_connections.Add({{"reason", reason}}).Increment();
  }

  // A call was cancelled because its client took nothing.
  void CountSlowReader(const std::string& rpc) { families_.slow_readers.Add({{"rpc", rpc}}).Increment(); }

  // The version serves.
  void SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration);
  // The version serves no more; its calls' counts go, too.
  void ForgetModel(const std::string& model, int64_t version);
  void CountModelLoadFailure() { families_.load_failures.Increment(); }

  // When what `file` (of a fixed list) stands for expires; InfiniteFuture if there is none.
  void SetTlsExpiry(const std::string& file, absl::Time expiry);

  void CountExportedSpans(int64_t spans) { families_.exported_spans.Increment(static_cast<double>(spans)); }
  void CountDroppedSpans(SpanLoss why, int64_t spans) {
    dropped_spans_[static_cast<size_t>(why)]->Increment(static_cast<double>(spans));
  }
  void CountFailedSpanExport() { families_.failed_span_exports.Increment(); }

  // For who counts what engines do.
  MetricFamilies& families() { return families_; }
  SeriesOfVersions& series_of_versions() { return series_of_versions_; }

  // Everything, in Prometheus' text form (version 0.0.4).
  std::string Serialize() const;

 private:
  // What the calls of one RPC, version and code are counted by: finding it among the labels takes longer than counting.
  struct RequestMetrics {
    prometheus::Counter& requests;
    prometheus::Histogram& duration;
  };

  struct IdentityMetrics {
    prometheus::Counter& requests;
    prometheus::Counter& tokens;
  };

  // With mutex_ held.
  RequestMetrics& FindRequestMetrics(const Asked& asked, absl::StatusCode code);
  IdentityMetrics FindIdentityMetrics(const std::string& label, absl::StatusCode code);

  MetricFamilies families_;
  const std::array<prometheus::Counter*, 4> dropped_spans_;  // by SpanLoss
  SeriesOfVersions series_of_versions_;

  std::mutex mutex_;                                  // guards what follows
  std::set<std::pair<std::string, int64_t>> served_;  // models and their versions
  // By RPC, model, version (0 if it does not serve) and code.
  std::map<std::tuple<std::string, std::string, int64_t, absl::StatusCode>, RequestMetrics> found_;
  std::map<std::pair<std::string, absl::StatusCode>, IdentityMetrics> found_identities_;
};

}  // namespace longshort::server
