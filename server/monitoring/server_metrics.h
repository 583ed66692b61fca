// The server's metrics for Prometheus. Names are a contract with dashboards. Labels are bounded: RPCs and gRPC codes
// are few, only served models are labels, and AccessControl limits the identities' labels.
//
// Thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/monitoring/metric_families.h"
#include "server/monitoring/version_series.h"

namespace longshort::server {

// Why spans were not exported.
enum class SpanLoss {
  kQueueFull,  // the export queue was full
  kCallLimit,  // their call had too many spans
  kFailed,     // all attempts to export them failed
  kRejected,   // the collector rejected them
};

// Scrapers come every minute or more often, and there may be several.
inline constexpr absl::Duration kKeptAfterUnload = absl::Minutes(5);
// Versions whose series are kept, where many are loaded and unloaded in that time.
inline constexpr size_t kMaxUnloaded = 64;

class ServerMetrics {
 public:
  // `latency_buckets`: upper bounds of all latency histograms, in seconds, in increasing order.
  // `clock` must outlive this.
  explicit ServerMetrics(std::vector<double> latency_buckets, const Clock& clock = SystemClock());
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // A call's RPC and model: "" and 0 for calls that name no served model.
  struct CallLabels {
    std::string rpc;
    std::string model;
    int64_t version = 0;
  };
  // Counts a completed call. Versions that are not served (SetModelLoadDuration, RemoveModel) share one label, "".
  void CountRequest(const CallLabels& labels, absl::StatusCode code, absl::Duration duration);

  // Counts a completed call of an identity (Identity::metric_label) and its tokens.
  void CountIdentity(const std::string& label, absl::StatusCode code, int64_t tokens);
  void CountTokenFileFailure() { families_.token_file_failures.Increment(); }

  // Counts connections refused because no descriptors were left.
  void CountRefusedConnections(int64_t connections) {
    families_.refused_connections.Increment(static_cast<double>(connections));
  }

  // Memory: 0 if unknown. Threads: of one worker's step.
  void SetLimits(int64_t memory_bytes, int64_t cpus, int64_t threads) {
    families_.memory_limit.Set(static_cast<double>(memory_bytes));
    families_.cpus.Set(static_cast<double>(cpus));
    families_.worker_threads.Set(static_cast<double>(threads));
  }

  // Sets the number of open gRPC connections.
  void SetOpenConnections(int64_t connections) { families_.open_connections.Set(static_cast<double>(connections)); }
  void SetOpenHttpConnections(size_t connections) {
    families_.open_http_connections.Set(static_cast<double>(connections));
  }
  // Counts a connection closed for abuse, by AbuseKindName, or by a defect of the server ("failure").
  void CountClosedConnection(const std::string& reason) {
    families_.closed_connections.Add({{"reason", reason}}).Increment();
  }

  // Counts a call cancelled because its client stopped reading.
  void CountSlowReader(const std::string& rpc) { families_.slow_readers.Add({{"rpc", rpc}}).Increment(); }

  void CountCompressedMessage() { families_.compressed_messages.Increment(); }

  // The version is served now.
  void SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration);
  // The version is no longer served. Its series and those of its calls stay for kKeptAfterUnload.
  void RemoveModel(const std::string& model, int64_t version);
  void CountModelLoadFailure() { families_.load_failures.Increment(); }
  // Versions that are not served, or not as their files are, because the last attempt to load them failed.
  void SetModelsNotLoaded(size_t versions) { families_.models_not_loaded.Set(static_cast<double>(versions)); }
  int64_t models_not_loaded() const { return static_cast<int64_t>(families_.models_not_loaded.Value()); }

  // Sets the expiry of `file` (of a fixed list); InfiniteFuture if there is none.
  void SetTlsExpiry(const std::string& file, absl::Time expiry);

  void CountExportedSpans(int64_t spans) { families_.exported_spans.Increment(static_cast<double>(spans)); }
  void CountDroppedSpans(SpanLoss why, int64_t spans) {
    dropped_spans_[static_cast<size_t>(why)]->Increment(static_cast<double>(spans));
  }
  void CountFailedSpanExport() { families_.failed_span_exports.Increment(); }

  // For the observers of engines.
  MetricFamilies& families() { return families_; }
  SeriesOfVersions& series_of_versions() { return series_of_versions_; }

  // All metrics, in Prometheus' text format (version 0.0.4). Then removes the series of versions that were unloaded
  // longer ago than kKeptAfterUnload, and the oldest of more than kMaxUnloaded.
  std::string Serialize();

 private:
  // The series of one RPC, version and code, cached because a lookup by labels takes longer than counting.
  struct RequestMetrics {
    prometheus::Counter& requests;
    prometheus::Histogram& duration;
  };

  struct IdentityMetrics {
    prometheus::Counter& requests;
    prometheus::Counter& tokens;
  };

  RequestMetrics& FindRequestMetrics(const CallLabels& labels, absl::StatusCode code)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveUnloaded(absl::Time time);
  void RemoveSeries(const std::pair<std::string, int64_t>& version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  IdentityMetrics FindIdentityMetrics(const std::string& label, absl::StatusCode code);

  const Clock& clock_;
  MetricFamilies families_;
  const std::array<prometheus::Counter*, 4> dropped_spans_;  // by SpanLoss
  SeriesOfVersions series_of_versions_;

  Mutex mutex_;
  std::set<std::pair<std::string, int64_t>> served_ ABSL_GUARDED_BY(mutex_);  // models and their versions
  // Of these, those that are unloaded, with the time.
  std::map<std::pair<std::string, int64_t>, absl::Time> unloaded_ ABSL_GUARDED_BY(mutex_);
  // By RPC, model, version (0 if it is not served) and code.
  std::map<std::tuple<std::string, std::string, int64_t, absl::StatusCode>, RequestMetrics> found_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, absl::StatusCode>, IdentityMetrics> found_identities_ ABSL_GUARDED_BY(mutex_);
};

// Metrics of the process, under the names that Prometheus' own client libraries use. Reads the values from Linux at
// each call, and leaves out unknown ones. Thread: any.
std::vector<prometheus::MetricFamily> CollectProcessMetrics();

// Single values. Thread: any.
double ProcessCpuSeconds();
double ResidentBytes();  // 0 if unknown

}  // namespace longshort::server
