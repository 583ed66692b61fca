#include "server/monitoring/engine_observers.h"

#include <string>
#include <utility>

#include "base/clock.h"
#include "core/cache/cache_grid.h"
#include "server/monitoring/logger.h"

namespace longshort::server {
namespace {

// Rows of a step: powers of two up to those of a long prompt.
const prometheus::Histogram::BucketBoundaries kRowBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

// Items of a classifier's batch.
const prometheus::Histogram::BucketBoundaries kItemBuckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

// One engine's part of a shared gauge; subtracted when the engine ends.
class Portion {
 public:
  explicit Portion(prometheus::Gauge& gauge) : gauge_(gauge) {}
  Portion(const Portion&) = delete;
  Portion& operator=(const Portion&) = delete;
  ~Portion() { Set(0); }

  void Set(double value) {
    if (value == value_) return;  // usually unchanged between steps
    gauge_.Increment(value - value_);
    value_ = value;
  }

 private:
  prometheus::Gauge& gauge_;
  double value_ = 0;
};

// A Portion or a gauge for each kind of page.
template <typename Gauge>
class OfPages {
 public:
  OfPages(VersionSeries& series, MetricFamilies::Gauges& family, const prometheus::Labels& more = {})
      : window_(OfKind(series, family, more, "window")),
        segment_(OfKind(series, family, more, "segment")),
        open_chunk_(OfKind(series, family, more, "open_chunk")) {}

  void Set(const models::CachePages& pages) {
    window_.Set(static_cast<double>(pages.window));
    segment_.Set(static_cast<double>(pages.segment));
    open_chunk_.Set(static_cast<double>(pages.open_chunk));
  }

 private:
  static prometheus::Gauge& OfKind(VersionSeries& series, MetricFamilies::Gauges& family, prometheus::Labels labels,
                                   const char* kind) {
    labels["kind"] = kind;
    return series.Add(family, labels);
  }

  Gauge window_;
  Gauge segment_;
  Gauge open_chunk_;
};

// One engine's count, added to a shared counter.
class Count {
 public:
  explicit Count(prometheus::Counter& counter) : counter_(counter) {}

  void Set(int64_t value) {
    if (value == value_) return;
    counter_.Increment(static_cast<double>(value - value_));
    value_ = value;
  }

 private:
  prometheus::Counter& counter_;
  int64_t value_ = 0;
};

// Counts and logs the failures of one model. Thread-safe.
class Failures {
 public:
  Failures(VersionSeries& series, MetricFamilies& all, Logger& log, const std::string& model)
      : log_(log, model),
        steps_(series.Add(all.step_failures)),
        rebuilds_(series.Add(all.worker_rebuilds)),
        failed_rebuilds_(series.Add(all.failed_worker_rebuilds)) {}

  void CountStep(const absl::Status& failure) {
    steps_.Increment();
    log_.StepFailed(failure, MonotonicNow());
  }
  void CountRebuild(const absl::Status& status) {
    if (status.ok()) return rebuilds_.Increment();
    failed_rebuilds_.Increment();
    log_.WorkerNotRebuilt(status, MonotonicNow());
  }

 private:
  FailureLog log_;
  prometheus::Counter& steps_;
  prometheus::Counter& rebuilds_;
  prometheus::Counter& failed_rebuilds_;
};

// Metrics that engines of both kinds report.
template <typename Observer>
class EngineMetrics : public Observer {
 public:
  EngineMetrics(ServerMetrics& metrics, Logger& log, const std::string& model, int64_t version,
                std::shared_ptr<core::ServingStatistics> statistics, int64_t workers)
      : all_(metrics.families()),
        series_(metrics.series_of_versions().Of(model, version)),
        statistics_(std::move(statistics)),
        failures_(*series_, all_, log, model) {
    workers_.Set(static_cast<double>(workers));
  }

  void OnQueued(absl::Duration waited) final { queue_.Observe(absl::ToDoubleSeconds(waited)); }
  void OnFailure(const absl::Status& failure) final { failures_.CountStep(failure); }
  void OnWorkerRebuilt(const absl::Status& status) final { failures_.CountRebuild(status); }

 protected:
  MetricFamilies& all_;
  const SeriesOfVersions::Held series_;  // outlives the members below and those of derived classes
  const std::shared_ptr<core::ServingStatistics> statistics_;
  prometheus::Counter& prompt_tokens_ = series_->Add(all_.prompt_tokens);
  Portion queue_length_{series_->Add(all_.queue_length)};
  // The used share of all caches of the version. Always 0 for classifiers, so that queries over all models include
  // them.
  prometheus::Gauge& cache_use_ = series_->Add(all_.cache_use);

 private:
  Failures failures_;
  Portion workers_{series_->Add(all_.workers)};
  prometheus::Histogram& queue_ = series_->Add(all_.queue_duration, {}, all_.latency_buckets);
};

// Metrics of one language model, updated by its engine.
class LanguageModelMetrics final : public EngineMetrics<core::LanguageModelEngineObserver> {
 public:
  using EngineMetrics::EngineMetrics;

  void OnPrefilled(absl::Duration prefill, int64_t prompt_tokens) override {
    prefill_.Observe(absl::ToDoubleSeconds(prefill));
    prompt_tokens_.Increment(static_cast<double>(prompt_tokens));
  }
  void OnStep(absl::Duration step, int64_t rows) override {
    step_.Observe(absl::ToDoubleSeconds(step));
    rows_.Observe(static_cast<double>(rows));
    statistics_->CountStep();
  }
  void OnFirstToken(absl::Duration since_submission) override {
    first_token_.Observe(absl::ToDoubleSeconds(since_submission));
    generated_tokens_.Increment();
  }
  void OnNextToken(absl::Duration since_previous) override {
    next_token_.Observe(absl::ToDoubleSeconds(since_previous));
    generated_tokens_.Increment();
  }
  void OnState(const core::LanguageModelEngineState& state) override {
    const core::CacheCounters& counters = state.cache.counters;
    cache_hits_.Set(counters.hits);
    cache_misses_.Set(counters.misses);
    reused_tokens_.Set(counters.reused_tokens);
    evicted_parked_.Set(counters.evicted_parked);
    evicted_ends_.Set(counters.evicted_ends);
    evicted_pages_.Set(counters.evicted_window + counters.evicted_segment);
    queued_.Set(static_cast<double>(state.queued_requests));
    queue_length_.Set(static_cast<double>(state.queued_requests));
    streams_.Set(static_cast<double>(state.active_streams));
    cache_used_.Set(static_cast<double>(state.cache_bytes_used));
    cache_idle_.Set(static_cast<double>(state.cache_bytes_idle));
    cache_free_.Set(static_cast<double>(state.cache_bytes_free));
    pages_used_.Set(state.cache.in_use);
    pages_kept_.Set(state.cache.idle - state.cache.spare);
    pages_spare_.Set(state.cache.spare);
    pages_free_.Set(state.cache.free);
    page_bytes_.Set(state.cache_page_bytes);
    const double cache = all_used_.Value() + all_idle_.Value() + all_free_.Value();
    cache_use_.Set(cache == 0 ? 0 : all_used_.Value() / cache);
    ends_.Set(static_cast<double>(state.cache.ends));
  }

 private:
  prometheus::Histogram& prefill_ = series_->Add(all_.prefill_duration, {}, all_.latency_buckets);
  prometheus::Histogram& step_ = series_->Add(all_.step_duration, {}, all_.latency_buckets);
  prometheus::Histogram& first_token_ = series_->Add(all_.time_to_first_token, {}, all_.latency_buckets);
  prometheus::Histogram& next_token_ = series_->Add(all_.inter_token_duration, {}, all_.latency_buckets);
  prometheus::Histogram& rows_ = series_->Add(all_.batch_rows, {}, kRowBuckets);
  prometheus::Counter& generated_tokens_ = series_->Add(all_.generated_tokens);
  Count cache_hits_{series_->Add(all_.cache_hits)};
  Count cache_misses_{series_->Add(all_.cache_misses)};
  Count reused_tokens_{series_->Add(all_.reused_tokens)};
  Count evicted_parked_{series_->Add(all_.evictions, {{"kind", "parked"}})};
  Count evicted_ends_{series_->Add(all_.evictions, {{"kind", "end"}})};
  Count evicted_pages_{series_->Add(all_.evictions, {{"kind", "page"}})};
  Portion queued_{series_->Add(all_.queued_requests)};
  Portion streams_{series_->Add(all_.streams_active)};
  prometheus::Gauge& all_used_ = series_->Add(all_.cache_bytes, {{"state", "used"}});
  prometheus::Gauge& all_idle_ = series_->Add(all_.cache_bytes, {{"state", "idle"}});
  prometheus::Gauge& all_free_ = series_->Add(all_.cache_bytes, {{"state", "free"}});
  Portion cache_used_{all_used_};
  Portion cache_idle_{all_idle_};
  Portion cache_free_{all_free_};
  OfPages<Portion> pages_used_{*series_, all_.cache_pages, {{"state", "used"}}};
  OfPages<Portion> pages_kept_{*series_, all_.cache_pages, {{"state", "kept"}}};
  OfPages<Portion> pages_spare_{*series_, all_.cache_pages, {{"state", "spare"}}};
  OfPages<Portion> pages_free_{*series_, all_.cache_pages, {{"state", "free"}}};
  OfPages<prometheus::Gauge&> page_bytes_{*series_, all_.cache_page_bytes};  // equal in all engines of a version
  Portion ends_{series_->Add(all_.cache_ends)};
};

// Metrics of one classifier. Several threads call it: metrics of prometheus-cpp are thread-safe, and OnState is called
// by one thread at a time.
class ClassifierMetrics final : public EngineMetrics<core::ClassifierEngineObserver> {
 public:
  using EngineMetrics::EngineMetrics;

  void OnPrepared(absl::Duration preparation) override { preparation_.Observe(absl::ToDoubleSeconds(preparation)); }
  void OnBatch(const core::BatchReport& batch) override {
    batch_.Observe(absl::ToDoubleSeconds(batch.run));
    batch_items_.Observe(static_cast<double>(batch.items));
    statistics_->CountBatch(batch.items, batch.run);
    multiply_adds_.Increment(static_cast<double>(batch.multiply_adds));
    prompt_tokens_.Increment(static_cast<double>(batch.tokens));
  }
  void OnEnded(const absl::Status& status) override {
    if (status.ok()) return ok_items_.Increment();
    series_->Add(all_.items, {{"code", absl::StatusCodeToString(status.code())}}).Increment();
  }
  void OnState(const core::ClassifierEngineState& state) override {
    queued_.Set(static_cast<double>(state.waiting_items));
    queue_length_.Set(static_cast<double>(state.waiting_items));
  }

 private:
  prometheus::Histogram& preparation_ = series_->Add(all_.preparation_duration, {}, all_.latency_buckets);
  prometheus::Histogram& batch_ = series_->Add(all_.batch_duration, {}, all_.latency_buckets);
  prometheus::Histogram& batch_items_ = series_->Add(all_.batch_items, {}, kItemBuckets);
  prometheus::Counter& multiply_adds_ = series_->Add(all_.multiply_adds);
  Portion queued_{series_->Add(all_.queued_items)};
  // The most frequent code.
  prometheus::Counter& ok_items_ = series_->Add(all_.items, {{"code", "OK"}});
};

// Metrics of one session store.
class SessionMetrics final : public core::SessionObserver {
 public:
  SessionMetrics(MetricFamilies& all, const std::string& model)
      : sessions_(all.sessions.Add({{"model", model}})), tokens_(all.session_tokens.Add({{"model", model}})) {}

  void OnSessions(int64_t sessions, int64_t tokens) override {
    sessions_.Set(static_cast<double>(sessions));
    tokens_.Set(static_cast<double>(tokens));
  }

 private:
  Portion sessions_;
  Portion tokens_;
};

}  // namespace

std::unique_ptr<core::LanguageModelEngineObserver> ObserveEngine(ServerMetrics& metrics, Logger& log,
                                                                 const std::string& model, int64_t version,
                                                                 std::shared_ptr<core::ServingStatistics> statistics,
                                                                 int64_t workers) {
  return std::make_unique<LanguageModelMetrics>(metrics, log, model, version, std::move(statistics), workers);
}

std::unique_ptr<core::ClassifierEngineObserver> ObserveClassifier(ServerMetrics& metrics, Logger& log,
                                                                  const std::string& model, int64_t version,
                                                                  std::shared_ptr<core::ServingStatistics> statistics,
                                                                  int64_t workers) {
  return std::make_unique<ClassifierMetrics>(metrics, log, model, version, std::move(statistics), workers);
}

std::unique_ptr<core::SessionObserver> ObserveSessions(ServerMetrics& metrics, const std::string& model) {
  return std::make_unique<SessionMetrics>(metrics.families(), model);
}

}  // namespace longshort::server
