// What the server tells Prometheus. Names are a contract with dashboards; labels are bounded: RPCs and gRPC codes are
// few, and a model's name is a label only if such a model is served.
//
// Thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/classification_engine.h"
#include "core/engine/engine.h"

namespace longshort {

// The canonical name of a gRPC code: "OK", "INVALID_ARGUMENT", ...
std::string CodeName(absl::StatusCode code);

class ServerMetrics {
 public:
  // `latency_buckets`: upper bounds of all latency histograms, seconds, rising.
  explicit ServerMetrics(std::vector<double> latency_buckets);
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // One call has ended. `model` is "" for calls that name no served model.
  void CountRequest(const std::string& rpc, const std::string& model, absl::StatusCode code, absl::Duration duration);

  // A call was cancelled because its client took nothing.
  void CountSlowReader(const std::string& rpc) { slow_readers_.Add({{"rpc", rpc}}).Increment(); }

  // Listens to one model's engine. Lives at least as long as the engine, at most as long as this. Engines of several
  // versions of a model add up.
  std::unique_ptr<EngineObserver> ObserveEngine(const std::string& model);

  // The same of a classifier's engine.
  std::unique_ptr<ClassificationObserver> ObserveClassifier(const std::string& model);

  void SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration);
  // The version serves no more.
  void ForgetModel(const std::string& model, int64_t version);
  void CountModelLoadFailure() { load_failures_.Increment(); }

  // Everything, in Prometheus' text form (version 0.0.4).
  std::string Serialize() const;

 private:
  // What the calls of one RPC, model and code are counted by: finding it among the labels takes longer than counting.
  struct RequestMetrics {
    prometheus::Counter& requests;
    prometheus::Histogram& duration;
  };

  class ModelMetrics;
  class ClassifierMetrics;

  RequestMetrics FindRequestMetrics(const std::string& rpc, const std::string& model, absl::StatusCode code);
  prometheus::Family<prometheus::Histogram>& Latency(const char* name, const char* help);

  const std::vector<double> latency_buckets_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& request_duration_;
  prometheus::Family<prometheus::Counter>& slow_readers_;
  prometheus::Family<prometheus::Histogram>& queue_duration_;
  prometheus::Family<prometheus::Histogram>& prefill_duration_;
  prometheus::Family<prometheus::Histogram>& step_duration_;
  prometheus::Family<prometheus::Histogram>& time_to_first_token_;
  prometheus::Family<prometheus::Histogram>& inter_token_duration_;
  prometheus::Family<prometheus::Histogram>& batch_rows_;
  prometheus::Family<prometheus::Histogram>& preparation_duration_;
  prometheus::Family<prometheus::Histogram>& batch_duration_;
  prometheus::Family<prometheus::Histogram>& batch_items_;
  prometheus::Family<prometheus::Counter>& items_;
  prometheus::Family<prometheus::Counter>& multiply_adds_;
  prometheus::Family<prometheus::Counter>& prompt_tokens_;
  prometheus::Family<prometheus::Counter>& generated_tokens_;
  prometheus::Family<prometheus::Counter>& step_failures_;
  prometheus::Family<prometheus::Counter>& worker_rebuilds_;
  prometheus::Family<prometheus::Counter>& cache_hits_;
  prometheus::Family<prometheus::Counter>& cache_misses_;
  prometheus::Family<prometheus::Counter>& reused_tokens_;
  prometheus::Family<prometheus::Counter>& evictions_;
  prometheus::Family<prometheus::Gauge>& queued_requests_;
  prometheus::Family<prometheus::Gauge>& streams_active_;
  prometheus::Family<prometheus::Gauge>& cache_bytes_;
  prometheus::Family<prometheus::Gauge>& load_duration_;
  prometheus::Counter& load_failures_;

  std::mutex mutex_;  // guards what follows
  std::map<std::tuple<std::string, std::string, absl::StatusCode>, RequestMetrics> found_;
};

}  // namespace longshort
