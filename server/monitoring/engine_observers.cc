#include "server/monitoring/engine_observers.h"

#include <string>
#include <utility>

#include "base/clock.h"
#include "core/cache/cache_pages.h"
#include "server/monitoring/code_name.h"
#include "server/monitoring/failure_log.h"

namespace longshort {
namespace {

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
    if (value == value_) return;  // as most are from step to step
    gauge_.Increment(value - value_);
    value_ = value;
  }

 private:
  prometheus::Gauge& gauge_;
  double value_ = 0;
};

// The same of a page of each kind.
class PagePortions {
 public:
  PagePortions(VersionSeries& series, prometheus::Family<prometheus::Gauge>& pages, const std::string& state)
      : window_(series.Add(pages, {{"kind", "window"}, {"state", state}})),
        segment_(series.Add(pages, {{"kind", "segment"}, {"state", state}})),
        open_chunk_(series.Add(pages, {{"kind", "open_chunk"}, {"state", state}})) {}

  void Set(const CachePages& pages) {
    window_.Set(static_cast<double>(pages.window));
    segment_.Set(static_cast<double>(pages.segment));
    open_chunk_.Set(static_cast<double>(pages.open_chunk));
  }

 private:
  Portion window_;
  Portion segment_;
  Portion open_chunk_;
};

// Bytes of a page of each kind, which are the same of all engines of a version. And how much of their caches is used.
class PageBytes {
 public:
  PageBytes(VersionSeries& series, MetricFamilies& all)
      : use_(series.Add(all.cache_use)),
        used_(series.Add(all.cache_bytes, {{"state", "used"}})),
        idle_(series.Add(all.cache_bytes, {{"state", "idle"}})),
        free_(series.Add(all.cache_bytes, {{"state", "free"}})),
        window_(series.Add(all.cache_page_bytes, {{"kind", "window"}})),
        segment_(series.Add(all.cache_page_bytes, {{"kind", "segment"}})),
        open_chunk_(series.Add(all.cache_page_bytes, {{"kind", "open_chunk"}})) {}

  // To be told behind the Portions.
  void Set(const CachePages& bytes) {
    const double all = used_.Value() + idle_.Value() + free_.Value();
    use_.Set(all == 0 ? 0 : used_.Value() / all);
    window_.Set(static_cast<double>(bytes.window));
    segment_.Set(static_cast<double>(bytes.segment));
    open_chunk_.Set(static_cast<double>(bytes.open_chunk));
  }

 private:
  prometheus::Gauge& use_;
  prometheus::Gauge& used_;
  prometheus::Gauge& idle_;
  prometheus::Gauge& free_;
  prometheus::Gauge& window_;
  prometheus::Gauge& segment_;
  prometheus::Gauge& open_chunk_;
};

// What one engine has counted so far, added to a counter that several share.
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

// What goes wrong with one model: counted, and said in the log. Thread-safe.
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

// One language model's numbers, kept up by its engine.
class LanguageModelMetrics final : public LanguageModelEngineObserver {
 public:
  LanguageModelMetrics(MetricFamilies& all, SeriesOfVersions::Held series, Logger& log, const std::string& model,
                       std::shared_ptr<ServingStatistics> statistics)
      : series_(std::move(series)),
        statistics_(std::move(statistics)),
        failures_(*series_, all, log, model),
        queue_(series_->Add(all.queue_duration, {}, all.latency_buckets)),
        prefill_(series_->Add(all.prefill_duration, {}, all.latency_buckets)),
        step_(series_->Add(all.step_duration, {}, all.latency_buckets)),
        first_token_(series_->Add(all.time_to_first_token, {}, all.latency_buckets)),
        next_token_(series_->Add(all.inter_token_duration, {}, all.latency_buckets)),
        rows_(series_->Add(all.batch_rows, {}, kRowBuckets)),
        prompt_tokens_(series_->Add(all.prompt_tokens)),
        generated_tokens_(series_->Add(all.generated_tokens)),
        cache_hits_(series_->Add(all.cache_hits)),
        cache_misses_(series_->Add(all.cache_misses)),
        reused_tokens_(series_->Add(all.reused_tokens)),
        evicted_parked_(series_->Add(all.evictions, {{"kind", "parked"}})),
        evicted_ends_(series_->Add(all.evictions, {{"kind", "end"}})),
        evicted_pages_(series_->Add(all.evictions, {{"kind", "page"}})),
        page_bytes_(*series_, all),
        queued_(series_->Add(all.queued_requests)),
        queue_length_(series_->Add(all.queue_length)),
        streams_(series_->Add(all.streams_active)),
        cache_used_(series_->Add(all.cache_bytes, {{"state", "used"}})),
        cache_idle_(series_->Add(all.cache_bytes, {{"state", "idle"}})),
        cache_free_(series_->Add(all.cache_bytes, {{"state", "free"}})),
        pages_used_(*series_, all.cache_pages, "used"),
        pages_kept_(*series_, all.cache_pages, "kept"),
        pages_spare_(*series_, all.cache_pages, "spare"),
        pages_free_(*series_, all.cache_pages, "free"),
        ends_(series_->Add(all.cache_ends)) {}

  void OnQueued(absl::Duration waited) override { queue_.Observe(absl::ToDoubleSeconds(waited)); }
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
  void OnFailure(const absl::Status& failure) override { failures_.CountStep(failure); }
  void OnWorkerRebuilt(const absl::Status& status) override { failures_.CountRebuild(status); }
  void OnState(const LanguageModelEngineState& state) override {
    const CacheCounters& cache = state.cache.counters;
    cache_hits_.Set(cache.hits);
    cache_misses_.Set(cache.misses);
    reused_tokens_.Set(cache.reused_tokens);
    evicted_parked_.Set(cache.evicted_parked);
    evicted_ends_.Set(cache.evicted_ends);
    evicted_pages_.Set(cache.evicted_window + cache.evicted_segment);
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
    ends_.Set(static_cast<double>(state.cache.ends));
  }

 private:
  const SeriesOfVersions::Held series_;  // outlives what is below
  const std::shared_ptr<ServingStatistics> statistics_;
  Failures failures_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& step_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& next_token_;
  prometheus::Histogram& rows_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generated_tokens_;
  Count cache_hits_;
  Count cache_misses_;
  Count reused_tokens_;
  Count evicted_parked_;
  Count evicted_ends_;
  Count evicted_pages_;
  PageBytes page_bytes_;
  Portion queued_;
  Portion queue_length_;
  Portion streams_;
  Portion cache_used_;
  Portion cache_idle_;
  Portion cache_free_;
  PagePortions pages_used_;
  PagePortions pages_kept_;
  PagePortions pages_spare_;
  PagePortions pages_free_;
  Portion ends_;
};

// One classifier's numbers. Called by several threads; what prometheus-cpp counts is safe for that, and OnState comes
// one at a time.
class ClassifierMetrics final : public ClassifierEngineObserver {
 public:
  ClassifierMetrics(MetricFamilies& all, SeriesOfVersions::Held series, Logger& log, const std::string& model,
                    std::shared_ptr<ServingStatistics> statistics)
      : series_(std::move(series)),
        statistics_(std::move(statistics)),
        failures_(*series_, all, log, model),
        all_(all),
        preparation_(series_->Add(all.preparation_duration, {}, all.latency_buckets)),
        queue_(series_->Add(all.queue_duration, {}, all.latency_buckets)),
        batch_(series_->Add(all.batch_duration, {}, all.latency_buckets)),
        batch_items_(series_->Add(all.batch_items, {}, kItemBuckets)),
        multiply_adds_(series_->Add(all.multiply_adds)),
        tokens_(series_->Add(all.prompt_tokens)),
        queued_(series_->Add(all.queued_items)),
        queue_length_(series_->Add(all.queue_length)),
        ok_items_(series_->Add(all.items, {{"code", CodeName(absl::StatusCode::kOk)}})) {
    series_->Add(all.cache_use);  // 0, for those who read it of every model
  }

  void OnPrepared(absl::Duration preparation) override { preparation_.Observe(absl::ToDoubleSeconds(preparation)); }
  void OnQueued(absl::Duration waited) override { queue_.Observe(absl::ToDoubleSeconds(waited)); }
  void OnBatch(const BatchReport& batch) override {
    batch_.Observe(absl::ToDoubleSeconds(batch.run));
    batch_items_.Observe(static_cast<double>(batch.items));
    statistics_->CountBatch(batch.items, batch.run);
    multiply_adds_.Increment(static_cast<double>(batch.multiply_adds));
    tokens_.Increment(static_cast<double>(batch.tokens));
  }
  void OnFailure(const absl::Status& failure) override { failures_.CountStep(failure); }
  void OnWorkerRebuilt(const absl::Status& status) override { failures_.CountRebuild(status); }
  void OnEnded(const absl::Status& status) override {
    if (status.ok()) return ok_items_.Increment();
    series_->Add(all_.items, {{"code", CodeName(status.code())}}).Increment();
  }
  void OnState(const ClassifierEngineState& state) override {
    queued_.Set(static_cast<double>(state.waiting_items));
    queue_length_.Set(static_cast<double>(state.waiting_items));
  }

 private:
  const SeriesOfVersions::Held series_;  // outlives what is below
  const std::shared_ptr<ServingStatistics> statistics_;
  Failures failures_;
  MetricFamilies& all_;
  prometheus::Histogram& preparation_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& batch_;
  prometheus::Histogram& batch_items_;
  prometheus::Counter& multiply_adds_;
  prometheus::Counter& tokens_;
  Portion queued_;
  Portion queue_length_;
  prometheus::Counter& ok_items_;  // the usual end
};

// One store's sessions.
class SessionMetrics final : public SessionObserver {
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

std::unique_ptr<LanguageModelEngineObserver> ObserveEngine(ServerMetrics& metrics, Logger& log,
                                                           const std::string& model, int64_t version,
                                                           std::shared_ptr<ServingStatistics> statistics) {
  return std::make_unique<LanguageModelMetrics>(metrics.families(), metrics.series_of_versions().Of(model, version),
                                                log, model, std::move(statistics));
}

std::unique_ptr<ClassifierEngineObserver> ObserveClassifier(ServerMetrics& metrics, Logger& log,
                                                            const std::string& model, int64_t version,
                                                            std::shared_ptr<ServingStatistics> statistics) {
  return std::make_unique<ClassifierMetrics>(metrics.families(), metrics.series_of_versions().Of(model, version), log,
                                             model, std::move(statistics));
}

std::unique_ptr<SessionObserver> ObserveSessions(ServerMetrics& metrics, const std::string& model) {
  return std::make_unique<SessionMetrics>(metrics.families(), model);
}

}  // namespace longshort
