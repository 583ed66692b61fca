// All numbers that the server tells Prometheus: their names, which are a contract with dashboards, and what they mean.
// docs/operations/metrics.md lists them with their labels.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <vector>

namespace longshort {

// Thread-safe.
struct MetricFamilies {
  explicit MetricFamilies(std::vector<double> latency_bucket_bounds);
  MetricFamilies(const MetricFamilies&) = delete;
  MetricFamilies& operator=(const MetricFamilies&) = delete;

  // Of every latency histogram, seconds, rising.
  const std::vector<double> latency_buckets;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests;
  prometheus::Family<prometheus::Histogram>& request_duration;
  prometheus::Family<prometheus::Counter>& slow_readers;
  prometheus::Family<prometheus::Counter>& identity_requests;
  prometheus::Family<prometheus::Counter>& identity_tokens;
  prometheus::Family<prometheus::Histogram>& queue_duration;
  prometheus::Family<prometheus::Histogram>& prefill_duration;
  prometheus::Family<prometheus::Histogram>& step_duration;
  prometheus::Family<prometheus::Histogram>& time_to_first_token;
  prometheus::Family<prometheus::Histogram>& inter_token_duration;
  prometheus::Family<prometheus::Histogram>& batch_rows;
  prometheus::Family<prometheus::Histogram>& preparation_duration;
  prometheus::Family<prometheus::Histogram>& batch_duration;
  prometheus::Family<prometheus::Histogram>& batch_items;
  prometheus::Family<prometheus::Counter>& items;
  prometheus::Family<prometheus::Counter>& multiply_adds;
  prometheus::Family<prometheus::Counter>& prompt_tokens;
  prometheus::Family<prometheus::Counter>& generated_tokens;
  prometheus::Family<prometheus::Counter>& step_failures;
  prometheus::Family<prometheus::Counter>& worker_rebuilds;
  prometheus::Family<prometheus::Counter>& failed_worker_rebuilds;
  prometheus::Family<prometheus::Counter>& cache_hits;
  prometheus::Family<prometheus::Counter>& cache_misses;
  prometheus::Family<prometheus::Counter>& reused_tokens;
  prometheus::Family<prometheus::Counter>& evictions;
  prometheus::Family<prometheus::Gauge>& queued_requests;
  prometheus::Family<prometheus::Gauge>& queued_items;
  prometheus::Family<prometheus::Gauge>& queue_length;
  prometheus::Family<prometheus::Gauge>& streams_active;
  prometheus::Family<prometheus::Gauge>& cache_use;
  prometheus::Family<prometheus::Gauge>& cache_bytes;
  prometheus::Family<prometheus::Gauge>& cache_pages;
  prometheus::Family<prometheus::Gauge>& cache_page_bytes;
  prometheus::Family<prometheus::Gauge>& cache_ends;
  prometheus::Family<prometheus::Gauge>& sessions;
  prometheus::Family<prometheus::Gauge>& session_tokens;
  prometheus::Family<prometheus::Gauge>& load_duration;
  prometheus::Counter& load_failures;
  prometheus::Counter& token_file_failures;
  prometheus::Counter& refused_connections;
  prometheus::Gauge& open_connections;
  prometheus::Gauge& memory_limit;
  prometheus::Family<prometheus::Counter>& closed_connections;
  prometheus::Family<prometheus::Gauge>& tls_expiry;
  prometheus::Counter& exported_spans;
  prometheus::Family<prometheus::Counter>& dropped_spans;
  prometheus::Counter& failed_span_exports;
};

}  // namespace longshort
