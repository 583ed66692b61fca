#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

#include "longshort_version.h"

namespace longshort {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// Rows of a step: powers of two up to what a long prompt may bring.
const prometheus::Histogram::BucketBoundaries kRowBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

// Items of a classifier's batch.
const prometheus::Histogram::BucketBoundaries kItemBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

// What one engine adds to a gauge that several share; takes it back when it ends.
class Portion {
 public:
  explicit Portion(prometheus::Gauge& gauge) : gauge_(gauge) {}
  Portion(const Portion&) = delete;
  Portion& operator=(const Portion&) = delete;
  ~Portion() { Set(0); }

  void Set(double value) {
    gauge_.Increment(value - value_);
    value_ = value;
  }

 private:
  prometheus::Gauge& gauge_;
  double value_ = 0;
};

// What one engine has counted so far, added to a counter that several share.
class Count {
 public:
  explicit Count(prometheus::Counter& counter) : counter_(counter) {}

  void Set(int64_t value) {
    counter_.Increment(static_cast<double>(value - value_));
    value_ = value;
  }

 private:
  prometheus::Counter& counter_;
  int64_t value_ = 0;
};

}  // namespace

// One language model's numbers, kept up by its engine.
class ServerMetrics::ModelMetrics final : public EngineObserver {
 public:
  ModelMetrics(ServerMetrics& all, const std::string& model)
      : queue_(all.queue_duration_.Add({{"model", model}}, all.latency_buckets_)),
        prefill_(all.prefill_duration_.Add({{"model", model}}, all.latency_buckets_)),
        step_(all.step_duration_.Add({{"model", model}}, all.latency_buckets_)),
        first_token_(all.time_to_first_token_.Add({{"model", model}}, all.latency_buckets_)),
        next_token_(all.inter_token_duration_.Add({{"model", model}}, all.latency_buckets_)),
        rows_(all.batch_rows_.Add({{"model", model}}, kRowBuckets)),
        prompt_tokens_(all.prompt_tokens_.Add({{"model", model}})),
        generated_tokens_(all.generated_tokens_.Add({{"model", model}})),
        failures_(all.step_failures_.Add({{"model", model}})),
        rebuilds_(all.worker_rebuilds_.Add({{"model", model}})),
        cache_hits_(all.cache_hits_.Add({{"model", model}})),
        cache_misses_(all.cache_misses_.Add({{"model", model}})),
        reused_tokens_(all.reused_tokens_.Add({{"model", model}})),
        evicted_parked_(all.evictions_.Add({{"model", model}, {"kind", "parked"}})),
        evicted_ends_(all.evictions_.Add({{"model", model}, {"kind", "end"}})),
        evicted_pages_(all.evictions_.Add({{"model", model}, {"kind", "page"}})),
        queued_(all.queued_requests_.Add({{"model", model}})),
        streams_(all.streams_active_.Add({{"model", model}})),
        cache_used_(all.cache_bytes_.Add({{"model", model}, {"state", "used"}})),
        cache_idle_(all.cache_bytes_.Add({{"model", model}, {"state", "idle"}})),
        cache_free_(all.cache_bytes_.Add({{"model", model}, {"state", "free"}})) {}

  void OnQueued(absl::Duration waited) override { queue_.Observe(absl::ToDoubleSeconds(waited)); }
  void OnPrefilled(absl::Duration prefill, int64_t prompt_tokens) override {
    prefill_.Observe(absl::ToDoubleSeconds(prefill));
    prompt_tokens_.Increment(static_cast<double>(prompt_tokens));
  }
  void OnStep(absl::Duration step, int64_t rows) override {
    step_.Observe(absl::ToDoubleSeconds(step));
    rows_.Observe(static_cast<double>(rows));
  }
  void OnFirstToken(absl::Duration since_submission) override {
    first_token_.Observe(absl::ToDoubleSeconds(since_submission));
    generated_tokens_.Increment();
  }
  void OnNextToken(absl::Duration since_previous) override {
    next_token_.Observe(absl::ToDoubleSeconds(since_previous));
    generated_tokens_.Increment();
  }
  void OnFailure(const absl::Status&) override { failures_.Increment(); }
  void OnWorkerRebuilt(const absl::Status& status) override {
    if (status.ok()) rebuilds_.Increment();
  }
  void OnState(const EngineState& state) override {
    const CacheCounters& cache = state.cache.counters;
    cache_hits_.Set(cache.hits);
    cache_misses_.Set(cache.misses);
    reused_tokens_.Set(cache.reused_tokens);
    evicted_parked_.Set(cache.evicted_parked);
    evicted_ends_.Set(cache.evicted_ends);
    evicted_pages_.Set(cache.evicted_window + cache.evicted_segment);
    queued_.Set(static_cast<double>(state.queued_requests));
    streams_.Set(static_cast<double>(state.active_streams));
    cache_used_.Set(static_cast<double>(state.cache_bytes_used));
    cache_idle_.Set(static_cast<double>(state.cache_bytes_idle));
    cache_free_.Set(static_cast<double>(state.cache_bytes_free));
  }

 private:
  prometheus::Histogram& queue_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& step_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& next_token_;
  prometheus::Histogram& rows_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generated_tokens_;
  prometheus::Counter& failures_;
  prometheus::Counter& rebuilds_;
  Count cache_hits_;
  Count cache_misses_;
  Count reused_tokens_;
  Count evicted_parked_;
  Count evicted_ends_;
  Count evicted_pages_;
  Portion queued_;
  Portion streams_;
  Portion cache_used_;
  Portion cache_idle_;
  Portion cache_free_;
};

// One classifier's numbers. Called by several threads; what prometheus-cpp counts is safe for that.
class ServerMetrics::ClassifierMetrics final : public ClassificationObserver {
 public:
  ClassifierMetrics(ServerMetrics& all, const std::string& model)
      : all_(all),
        model_(model),
        preparation_(all.preparation_duration_.Add({{"model", model}}, all.latency_buckets_)),
        queue_(all.queue_duration_.Add({{"model", model}}, all.latency_buckets_)),
        batch_(all.batch_duration_.Add({{"model", model}}, all.latency_buckets_)),
        batch_items_(all.batch_items_.Add({{"model", model}}, kItemBuckets)),
        multiply_adds_(all.multiply_adds_.Add({{"model", model}})),
        tokens_(all.prompt_tokens_.Add({{"model", model}})),
        failures_(all.step_failures_.Add({{"model", model}})),
        rebuilds_(all.worker_rebuilds_.Add({{"model", model}})),
        ok_items_(all.items_.Add({{"model", model}, {"code", CodeName(absl::StatusCode::kOk)}})) {}

  void OnPrepared(absl::Duration preparation) override { preparation_.Observe(absl::ToDoubleSeconds(preparation)); }
  void OnQueued(absl::Duration waited) override { queue_.Observe(absl::ToDoubleSeconds(waited)); }
  void OnBatch(const BatchReport& batch) override {
    batch_.Observe(absl::ToDoubleSeconds(batch.run));
    batch_items_.Observe(static_cast<double>(batch.items));
    multiply_adds_.Increment(static_cast<double>(batch.multiply_adds));
    tokens_.Increment(static_cast<double>(batch.tokens));
  }
  void OnFailure(const absl::Status&) override { failures_.Increment(); }
  void OnWorkerRebuilt(const absl::Status& status) override {
    if (status.ok()) rebuilds_.Increment();
  }
  void OnEnded(const absl::Status& status) override {
    if (status.ok()) return ok_items_.Increment();
    all_.items_.Add({{"model", model_}, {"code", CodeName(status.code())}}).Increment();
  }

 private:
  ServerMetrics& all_;
  const std::string model_;
  prometheus::Histogram& preparation_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& batch_;
  prometheus::Histogram& batch_items_;
  prometheus::Counter& multiply_adds_;
  prometheus::Counter& tokens_;
  prometheus::Counter& failures_;
  prometheus::Counter& rebuilds_;
  prometheus::Counter& ok_items_;  // the usual end
};

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

prometheus::Family<prometheus::Histogram>& ServerMetrics::Latency(const char* name, const char* help) {
  return BuildHistogram().Name(name).Help(help).Register(registry_);
}

ServerMetrics::ServerMetrics(std::vector<double> latency_buckets)
    : latency_buckets_(std::move(latency_buckets)),
      requests_(BuildCounter()
                    .Name("longshort_requests_total")
                    .Help("Calls that ended, by final gRPC code")
                    .Register(registry_)),
      request_duration_(Latency("longshort_request_duration_seconds", "From a call's arrival to its end")),
      slow_readers_(BuildCounter()
                        .Name("longshort_slow_readers_cancelled_total")
                        .Help("Streams cancelled because the client took nothing of what waited for it")
                        .Register(registry_)),
      queue_duration_(Latency("longshort_queue_duration_seconds",
                              "From submission to the engine, or from being prepared, to the first step or batch")),
      prefill_duration_(Latency("longshort_prefill_duration_seconds", "From the first step until the prompt was read")),
      step_duration_(Latency("longshort_step_duration_seconds", "One step of the model, over all its rows")),
      time_to_first_token_(
          Latency("longshort_time_to_first_token_seconds", "From submission to the first sampled token")),
      inter_token_duration_(
          Latency("longshort_inter_token_duration_seconds", "Between two sampled tokens of a completion")),
      batch_rows_(Latency("longshort_batch_rows", "Tokens in one step, over all sequences")),
      preparation_duration_(Latency("longshort_preparation_duration_seconds", "Decoding and resizing one image")),
      batch_duration_(Latency("longshort_batch_duration_seconds", "One batch of a classifier, over all its items")),
      batch_items_(Latency("longshort_batch_items", "Items in one batch of a classifier")),
      items_(BuildCounter()
                 .Name("longshort_items_total")
                 .Help("Images and documents of classifiers that ended, by code")
                 .Register(registry_)),
      multiply_adds_(BuildCounter()
                         .Name("longshort_multiply_adds_total")
                         .Help("Multiply-adds of the classifiers' matrix products and convolutions")
                         .Register(registry_)),
      prompt_tokens_(BuildCounter()
                         .Name("longshort_prompt_tokens_total")
                         .Help("Tokens of prompts and documents read")
                         .Register(registry_)),
      generated_tokens_(
          BuildCounter().Name("longshort_generated_tokens_total").Help("Tokens sampled").Register(registry_)),
      step_failures_(BuildCounter()
                         .Name("longshort_step_failures_total")
                         .Help("Steps and batches of the model that failed; their requests were tried again")
                         .Register(registry_)),
      worker_rebuilds_(BuildCounter()
                           .Name("longshort_worker_rebuilds_total")
                           .Help("Workers that got a new replica because the model threw, or failed again and again")
                           .Register(registry_)),
      cache_hits_(BuildCounter()
                      .Name("longshort_cache_hits_total")
                      .Help("Sequences that began behind tokens read before")
                      .Register(registry_)),
      cache_misses_(BuildCounter()
                        .Name("longshort_cache_misses_total")
                        .Help("Sequences that began at their first token")
                        .Register(registry_)),
      reused_tokens_(BuildCounter()
                         .Name("longshort_reused_tokens_total")
                         .Help("Tokens that hits did not have to read")
                         .Register(registry_)),
      evictions_(BuildCounter()
                     .Name("longshort_evictions_total")
                     .Help("Parked sequences, ends of what was read before, and pages that made room in the cache")
                     .Register(registry_)),
      queued_requests_(BuildGauge()
                           .Name("longshort_queued_requests")
                           .Help("Requests that wait for a worker, after the latest step")
                           .Register(registry_)),
      streams_active_(
          BuildGauge().Name("longshort_streams_active").Help("Sequences that hold cache now").Register(registry_)),
      cache_bytes_(
          BuildGauge().Name("longshort_cache_bytes").Help("Bytes of cache pages, by state").Register(registry_)),
      load_duration_(BuildGauge()
                         .Name("longshort_model_load_duration_seconds")
                         .Help("How long loading the model took")
                         .Register(registry_)),
      load_failures_(BuildCounter()
                         .Name("longshort_model_load_failures_total")
                         .Help("Versions that could not be loaded while the server ran")
                         .Register(registry_)
                         .Add({})) {
  BuildGauge()
      .Name("longshort_build_info")
      .Help("Always 1; the labels say what runs")
      .Register(registry_)
      .Add({{"version", std::string(kVersion)}, {"compiler", __VERSION__}})
      .Set(1);
}

void ServerMetrics::CountRequest(const std::string& rpc, const std::string& model, absl::StatusCode code,
                                 absl::Duration duration) {
  const RequestMetrics metrics = FindRequestMetrics(rpc, model, code);
  metrics.requests.Increment();
  metrics.duration.Observe(absl::ToDoubleSeconds(duration));
}

ServerMetrics::RequestMetrics ServerMetrics::FindRequestMetrics(const std::string& rpc, const std::string& model,
                                                                absl::StatusCode code) {
  std::tuple key(rpc, model, code);
  const std::lock_guard lock(mutex_);
  if (const auto found = found_.find(key); found != found_.end()) return found->second;
  const RequestMetrics metrics = {requests_.Add({{"rpc", rpc}, {"model", model}, {"code", CodeName(code)}}),
                                  request_duration_.Add({{"rpc", rpc}, {"model", model}}, latency_buckets_)};
  found_.emplace(std::move(key), metrics);
  return metrics;
}

std::unique_ptr<EngineObserver> ServerMetrics::ObserveEngine(const std::string& model) {
  return std::make_unique<ModelMetrics>(*this, model);
}

std::unique_ptr<ClassificationObserver> ServerMetrics::ObserveClassifier(const std::string& model) {
  return std::make_unique<ClassifierMetrics>(*this, model);
}

void ServerMetrics::SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration) {
  load_duration_.Add({{"model", model}, {"version", std::to_string(version)}}).Set(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::ForgetModel(const std::string& model, int64_t version) {
  load_duration_.Remove(&load_duration_.Add({{"model", model}, {"version", std::to_string(version)}}));
}

std::string ServerMetrics::Serialize() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

}  // namespace longshort
