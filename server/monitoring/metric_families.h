// The server's metric families, for Prometheus. Their names are a contract with dashboards; docs/operations/metrics.md
// lists them with their labels.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <vector>

namespace longshort::server {

// Thread-safe.
struct MetricFamilies {
  using Counters = prometheus::Family<prometheus::Counter>;
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Histograms = prometheus::Family<prometheus::Histogram>;

  explicit MetricFamilies(std::vector<double> latency_bucket_bounds);
  MetricFamilies(const MetricFamilies&) = delete;
  MetricFamilies& operator=(const MetricFamilies&) = delete;

  // Upper bounds of every latency histogram, in seconds, in increasing order.
  const std::vector<double> latency_buckets;
  prometheus::Registry registry;

  Counters& requests = NewCounters("longshort_requests_total", "Completed calls, by final gRPC code");
  Histograms& request_duration =
      NewHistograms("longshort_request_duration_seconds", "Time from a call's arrival to its end");
  Counters& slow_readers = NewCounters("longshort_slow_readers_cancelled_total",
                                       "Streams and long answers cancelled because the client stopped reading");
  prometheus::Counter& compressed_messages =
      NewCounters("longshort_compressed_messages_total", "Request messages that arrived compressed").Add({});
  Gauges& memory_bytes = NewGauges("longshort_call_memory_bytes", "Memory that requests and connections hold, by part");
  Gauges& memory_limits = NewGauges("longshort_call_memory_limit_bytes", "The most that each part may hold");
  Counters& identity_requests = NewCounters("longshort_identity_requests_total",
                                            "Completed calls of each identity, by final gRPC code; with --token-file");
  Counters& identity_tokens =
      NewCounters("longshort_identity_tokens_total",
                  "Tokens read and generated in completed calls of each identity; with --token-file");
  Histograms& queue_duration =
      NewHistograms("longshort_queue_duration_seconds",
                    "Time from submission to the engine, or from the end of preparation, to the first step or batch");
  Histograms& prefill_duration =
      NewHistograms("longshort_prefill_duration_seconds", "Time from the first step until the prompt has been read");
  Histograms& step_duration =
      NewHistograms("longshort_step_duration_seconds", "Duration of one step of the model, over all its rows");
  Histograms& time_to_first_token =
      NewHistograms("longshort_time_to_first_token_seconds", "Time from submission to the first sampled token");
  Histograms& inter_token_duration =
      NewHistograms("longshort_inter_token_duration_seconds", "Time between two sampled tokens of a completion");
  Histograms& batch_rows = NewHistograms("longshort_batch_rows", "Tokens in one step, over all sequences");
  Histograms& preparation_duration =
      NewHistograms("longshort_preparation_duration_seconds", "Time to decode and resize one image");
  Histograms& batch_duration =
      NewHistograms("longshort_batch_duration_seconds", "Duration of one batch of a classifier, over all its items");
  Histograms& batch_items = NewHistograms("longshort_batch_items", "Items in one batch of a classifier");
  Counters& items = NewCounters("longshort_items_total", "Completed images and documents of classifiers, by code");
  Counters& multiply_adds = NewCounters("longshort_multiply_adds_total",
                                        "Multiply-adds of the classifiers' matrix products and convolutions");
  Counters& prompt_tokens = NewCounters("longshort_prompt_tokens_total", "Tokens of prompts and documents read");
  Counters& generated_tokens = NewCounters("longshort_generated_tokens_total", "Tokens sampled");
  Gauges& workers = NewGauges("longshort_workers", "Workers of the model");
  Counters& step_failures = NewCounters("longshort_step_failures_total",
                                        "Steps and batches of the model that failed; each of their requests is tried "
                                        "again, unless it has failed too often");
  Counters& worker_rebuilds =
      NewCounters("longshort_worker_rebuilds_total",
                  "Times a worker replaced its replica because the model threw or failed repeatedly");
  Counters& failed_worker_rebuilds =
      NewCounters("longshort_worker_rebuild_failures_total",
                  "Times a worker could not replace its replica; it retries every second");
  Counters& cache_hits = NewCounters("longshort_cache_hits_total", "Sequences that reused cached tokens");
  Counters& cache_misses =
      NewCounters("longshort_cache_misses_total", "Sequences that found no cached tokens to reuse");
  Counters& reused_tokens =
      NewCounters("longshort_reused_tokens_total", "Tokens that sequences took from the cache instead of reading them");
  Counters& evictions = NewCounters("longshort_evictions_total",
                                    "Parked sequences, cached ends and pages evicted to make room in the cache");
  Gauges& queued_requests = NewGauges("longshort_queued_requests", "Requests queued for a worker");
  Gauges& queued_items =
      NewGauges("longshort_queued_items", "Images and documents queued for a batch, including those in preparation");
  Gauges& queue_length = NewGauges(
      "longshort_queue_length", "Queued requests of a language model, or queued images and documents of a classifier");
  Gauges& streams_active = NewGauges("longshort_streams_active", "Sequences that hold cache pages now");
  Gauges& cache_use =
      NewGauges("longshort_cache_use_ratio",
                "Share of the cache that running sequences hold, 0 to 1; 0 for classifiers, which have no cache");
  Gauges& cache_bytes = NewGauges("longshort_cache_bytes", "Bytes of cache pages, by state");
  Gauges& cache_pages = NewGauges("longshort_cache_pages", "Cache pages, by kind and state");
  Gauges& cache_page_bytes = NewGauges("longshort_cache_page_bytes", "Bytes of one cache page, by kind");
  Gauges& cache_ends =
      NewGauges("longshort_cache_ends", "Ends of cached texts, and forks, whose pages are kept for reuse");
  Gauges& sessions =
      NewGauges("longshort_sessions", "Live sessions, of all versions of the model with the same weights");
  Gauges& session_tokens = NewGauges("longshort_session_tokens", "Tokens of the live sessions");
  Gauges& load_duration = NewGauges("longshort_model_load_duration_seconds", "How long the model took to load");
  prometheus::Counter& load_failures = NewCounters("longshort_model_load_failures_total",
                                                   "Model versions that failed to load, or did not fit in the memory")
                                           .Add({});
  prometheus::Gauge& models_not_loaded =
      NewGauges("longshort_models_not_loaded",
                "Model versions that are not served, or not as their files are: the last attempt to load them failed")
          .Add({});
  prometheus::Counter& token_file_failures =
      NewCounters("longshort_token_file_failures_total",
                  "Changes of --token-file that were invalid; the server keeps the previous contents")
          .Add({});
  prometheus::Counter& refused_connections =
      NewCounters("longshort_connections_refused_total",
                  "gRPC connections closed at once because the process was out of file descriptors")
          .Add({});
  prometheus::Gauge& open_connections =
      NewGauges("longshort_connections_open", "Open gRPC connections, updated several times a second").Add({});
  prometheus::Gauge& open_http_connections =
      NewGauges("longshort_http_connections_open", "Open connections of the HTTP port").Add({});
  prometheus::Gauge& cpus =
      NewGauges("longshort_cpus", "CPUs that the process may use: its affinity, or the cgroup's quota rounded down")
          .Add({});
  prometheus::Gauge& worker_threads =
      NewGauges("longshort_worker_threads", "Maximum threads of one worker's model step (--threads)").Add({});
  prometheus::Gauge& memory_limit =
      NewGauges("longshort_memory_limit_bytes", "Memory that the process may use: the machine's, or the cgroup's limit")
          .Add({});
  Counters& closed_connections =
      NewCounters("longshort_connections_closed_total",
                  "Connections closed because the client abused HTTP/2, or the server failed, by reason");
  Gauges& tls_expiry =
      NewGauges("longshort_tls_certificate_expiry_seconds",
                "Expiry, Unix time, of the server's certificate, the clients' authorities and the revocation lists");
  prometheus::Counter& exported_spans =
      NewCounters("longshort_spans_exported_total", "Spans that the trace collector has accepted").Add({});
  Counters& dropped_spans =
      NewCounters("longshort_spans_dropped_total", "Spans of recorded calls that were not exported, by reason");
  prometheus::Counter& failed_span_exports =
      NewCounters("longshort_span_export_failures_total", "Failed attempts to export spans; most are retried").Add({});

 private:
  Counters& NewCounters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Gauges& NewGauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Histograms& NewHistograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
};

}  // namespace longshort::server
