// All numbers that the server tells Prometheus: their names, which are a contract with dashboards, and what they mean.
// docs/operations/metrics.md lists them with their labels.
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

  // Of every latency histogram, seconds, rising.
  const std::vector<double> latency_buckets;
  prometheus::Registry registry;

  Counters& requests = NewCounters("longshort_requests_total", "Calls that ended, by final gRPC code");
  Histograms& request_duration =
      NewHistograms("longshort_request_duration_seconds", "From a call's arrival to its end");
  Counters& slow_readers =
      NewCounters("longshort_slow_readers_cancelled_total",
                  "Streams and long answers cancelled because the client took nothing of what waited for it");
  Counters& identity_requests = NewCounters("longshort_identity_requests_total",
                                            "Calls of each identity that ended, by final gRPC code; with --token-file");
  Counters& identity_tokens =
      NewCounters("longshort_identity_tokens_total",
                  "Tokens read and generated in calls of each identity that ended; with --token-file");
  Histograms& queue_duration =
      NewHistograms("longshort_queue_duration_seconds",
                    "From submission to the engine, or from being prepared, to the first step or batch");
  Histograms& prefill_duration =
      NewHistograms("longshort_prefill_duration_seconds", "From the first step until the prompt was read");
  Histograms& step_duration =
      NewHistograms("longshort_step_duration_seconds", "One step of the model, over all its rows");
  Histograms& time_to_first_token =
      NewHistograms("longshort_time_to_first_token_seconds", "From submission to the first sampled token");
  Histograms& inter_token_duration =
      NewHistograms("longshort_inter_token_duration_seconds", "Between two sampled tokens of a completion");
  Histograms& batch_rows = NewHistograms("longshort_batch_rows", "Tokens in one step, over all sequences");
  Histograms& preparation_duration =
      NewHistograms("longshort_preparation_duration_seconds", "Decoding and resizing one image");
  Histograms& batch_duration =
      NewHistograms("longshort_batch_duration_seconds", "One batch of a classifier, over all its items");
  Histograms& batch_items = NewHistograms("longshort_batch_items", "Items in one batch of a classifier");
  Counters& items = NewCounters("longshort_items_total", "Images and documents of classifiers that ended, by code");
  Counters& multiply_adds = NewCounters("longshort_multiply_adds_total",
                                        "Multiply-adds of the classifiers' matrix products and convolutions");
  Counters& prompt_tokens = NewCounters("longshort_prompt_tokens_total", "Tokens of prompts and documents read");
  Counters& generated_tokens = NewCounters("longshort_generated_tokens_total", "Tokens sampled");
  Counters& step_failures = NewCounters("longshort_step_failures_total",
                                        "Steps and batches of the model that failed; their requests were tried again");
  Counters& worker_rebuilds =
      NewCounters("longshort_worker_rebuilds_total",
                  "Workers that got a new replica because the model threw, or failed again and again");
  Counters& failed_worker_rebuilds =
      NewCounters("longshort_worker_rebuild_failures_total",
                  "Times that a worker could get no new replica; it tries again each second");
  Counters& cache_hits = NewCounters("longshort_cache_hits_total", "Sequences that began behind tokens read before");
  Counters& cache_misses =
      NewCounters("longshort_cache_misses_total", "Sequences that began behind nothing that was read before");
  Counters& reused_tokens =
      NewCounters("longshort_reused_tokens_total", "Tokens that sequences did not have to read, since others had");
  Counters& evictions =
      NewCounters("longshort_evictions_total",
                  "Parked sequences, ends of what was read before, and pages that made room in the cache");
  Gauges& queued_requests = NewGauges("longshort_queued_requests", "Requests that wait for a worker");
  Gauges& queued_items =
      NewGauges("longshort_queued_items", "Images and documents that wait for a batch, those in preparation included");
  Gauges& queue_length = NewGauges("longshort_queue_length",
                                   "What waits: requests of a language model, images and documents of a classifier");
  Gauges& streams_active = NewGauges("longshort_streams_active", "Sequences that hold cache now");
  Gauges& cache_use =
      NewGauges("longshort_cache_use_ratio",
                "Part of the cache that running sequences hold, 0 to 1; 0 of classifiers, which have none");
  Gauges& cache_bytes = NewGauges("longshort_cache_bytes", "Bytes of cache pages, by state");
  Gauges& cache_pages = NewGauges("longshort_cache_pages", "Cache pages, by kind and state");
  Gauges& cache_page_bytes = NewGauges("longshort_cache_page_bytes", "Bytes of one cache page, by kind");
  Gauges& cache_ends = NewGauges("longshort_cache_ends",
                                 "Ends of what was read before whose pages are kept, so that others can begin there");
  Gauges& sessions =
      NewGauges("longshort_sessions", "Sessions that live, all versions of the model's same weights together");
  Gauges& session_tokens = NewGauges("longshort_session_tokens", "Tokens that these sessions hold");
  Gauges& load_duration = NewGauges("longshort_model_load_duration_seconds", "How long loading the model took");
  prometheus::Counter& load_failures =
      NewCounters("longshort_model_load_failures_total", "Versions that could not be loaded while the server ran")
          .Add({});
  prometheus::Counter& token_file_failures =
      NewCounters("longshort_token_file_failures_total",
                  "New contents of --token-file that were wrong; what was before still holds")
          .Add({});
  prometheus::Counter& refused_connections =
      NewCounters("longshort_connections_refused_total",
                  "gRPC connections closed at once because the process had no descriptors for more")
          .Add({});
  prometheus::Gauge& open_connections =
      NewGauges("longshort_connections_open", "gRPC connections, counted a few times a second").Add({});
  prometheus::Gauge& memory_limit = NewGauges("longshort_memory_limit_bytes",
                                              "Memory that the process may have: the machine's, or the cgroup's limit")
                                        .Add({});
  Counters& closed_connections = NewCounters("longshort_connections_closed_total",
                                             "gRPC connections closed because their clients took without giving");
  Gauges& tls_expiry =
      NewGauges("longshort_tls_certificate_expiry_seconds",
                "When it expires, unix time: the server's certificate, clients' authorities, revocation lists");
  prometheus::Counter& exported_spans =
      NewCounters("longshort_spans_exported_total", "Spans that the collector of traces has taken").Add({});
  Counters& dropped_spans =
      NewCounters("longshort_spans_dropped_total", "Spans of recorded calls that were not exported, by reason");
  prometheus::Counter& failed_span_exports =
      NewCounters("longshort_span_export_failures_total", "Tries to export spans that failed; most are tried again")
          .Add({});

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
