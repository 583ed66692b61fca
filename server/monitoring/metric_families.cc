#include "server/monitoring/metric_families.h"

#include <string>
#include <utility>

#include "longshort_version.h"

namespace longshort {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;

prometheus::Family<prometheus::Histogram>& Histogram(prometheus::Registry& registry, const char* name,
                                                     const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

MetricFamilies::MetricFamilies(std::vector<double> latency_bucket_bounds)
    : latency_buckets(std::move(latency_bucket_bounds)),
      requests(BuildCounter()
                   .Name("longshort_requests_total")
                   .Help("Calls that ended, by final gRPC code")
                   .Register(registry)),
      request_duration(Histogram(registry, "longshort_request_duration_seconds", "From a call's arrival to its end")),
      slow_readers(BuildCounter()
                       .Name("longshort_slow_readers_cancelled_total")
                       .Help("Streams and long answers cancelled because the client took nothing of what waited for it")
                       .Register(registry)),
      identity_requests(BuildCounter()
                            .Name("longshort_identity_requests_total")
                            .Help("Calls of each identity that ended, by final gRPC code; with --token-file")
                            .Register(registry)),
      identity_tokens(BuildCounter()
                          .Name("longshort_identity_tokens_total")
                          .Help("Tokens read and generated in calls of each identity that ended; with --token-file")
                          .Register(registry)),
      queue_duration(Histogram(registry, "longshort_queue_duration_seconds",
                               "From submission to the engine, or from being prepared, to the first step or batch")),
      prefill_duration(
          Histogram(registry, "longshort_prefill_duration_seconds", "From the first step until the prompt was read")),
      step_duration(Histogram(registry, "longshort_step_duration_seconds", "One step of the model, over all its rows")),
      time_to_first_token(
          Histogram(registry, "longshort_time_to_first_token_seconds", "From submission to the first sampled token")),
      inter_token_duration(
          Histogram(registry, "longshort_inter_token_duration_seconds", "Between two sampled tokens of a completion")),
      batch_rows(Histogram(registry, "longshort_batch_rows", "Tokens in one step, over all sequences")),
      preparation_duration(
          Histogram(registry, "longshort_preparation_duration_seconds", "Decoding and resizing one image")),
      batch_duration(
          Histogram(registry, "longshort_batch_duration_seconds", "One batch of a classifier, over all its items")),
      batch_items(Histogram(registry, "longshort_batch_items", "Items in one batch of a classifier")),
      items(BuildCounter()
                .Name("longshort_items_total")
                .Help("Images and documents of classifiers that ended, by code")
                .Register(registry)),
      multiply_adds(BuildCounter()
                        .Name("longshort_multiply_adds_total")
                        .Help("Multiply-adds of the classifiers' matrix products and convolutions")
                        .Register(registry)),
      prompt_tokens(BuildCounter()
                        .Name("longshort_prompt_tokens_total")
                        .Help("Tokens of prompts and documents read")
                        .Register(registry)),
      generated_tokens(
          BuildCounter().Name("longshort_generated_tokens_total").Help("Tokens sampled").Register(registry)),
      step_failures(BuildCounter()
                        .Name("longshort_step_failures_total")
                        .Help("Steps and batches of the model that failed; their requests were tried again")
                        .Register(registry)),
      worker_rebuilds(BuildCounter()
                          .Name("longshort_worker_rebuilds_total")
                          .Help("Workers that got a new replica because the model threw, or failed again and again")
                          .Register(registry)),
      failed_worker_rebuilds(BuildCounter()
                                 .Name("longshort_worker_rebuild_failures_total")
                                 .Help("Times that a worker could get no new replica; it tries again each second")
                                 .Register(registry)),
      cache_hits(BuildCounter()
                     .Name("longshort_cache_hits_total")
                     .Help("Sequences that began behind tokens read before")
                     .Register(registry)),
      cache_misses(BuildCounter()
                       .Name("longshort_cache_misses_total")
                       .Help("Sequences that began behind nothing that was read before")
                       .Register(registry)),
      reused_tokens(BuildCounter()
                        .Name("longshort_reused_tokens_total")
                        .Help("Tokens that sequences did not have to read, since others had")
                        .Register(registry)),
      evictions(BuildCounter()
                    .Name("longshort_evictions_total")
                    .Help("Parked sequences, ends of what was read before, and pages that made room in the cache")
                    .Register(registry)),
      queued_requests(
          BuildGauge().Name("longshort_queued_requests").Help("Requests that wait for a worker").Register(registry)),
      queued_items(BuildGauge()
                       .Name("longshort_queued_items")
                       .Help("Images and documents that wait for a batch, those in preparation included")
                       .Register(registry)),
      queue_length(BuildGauge()
                       .Name("longshort_queue_length")
                       .Help("What waits: requests of a language model, images and documents of a classifier")
                       .Register(registry)),
      streams_active(
          BuildGauge().Name("longshort_streams_active").Help("Sequences that hold cache now").Register(registry)),
      cache_use(BuildGauge()
                    .Name("longshort_cache_use_ratio")
                    .Help("Part of the cache that running sequences hold, 0 to 1; 0 of classifiers, which have none")
                    .Register(registry)),
      cache_bytes(BuildGauge().Name("longshort_cache_bytes").Help("Bytes of cache pages, by state").Register(registry)),
      cache_pages(BuildGauge().Name("longshort_cache_pages").Help("Cache pages, by kind and state").Register(registry)),
      cache_page_bytes(
          BuildGauge().Name("longshort_cache_page_bytes").Help("Bytes of one cache page, by kind").Register(registry)),
      cache_ends(BuildGauge()
                     .Name("longshort_cache_ends")
                     .Help("Ends of what was read before whose pages are kept, so that others can begin there")
                     .Register(registry)),
      sessions(BuildGauge()
                   .Name("longshort_sessions")
                   .Help("Sessions that live, all versions of the model's same weights together")
                   .Register(registry)),
      session_tokens(
          BuildGauge().Name("longshort_session_tokens").Help("Tokens that these sessions hold").Register(registry)),
      load_duration(BuildGauge()
                        .Name("longshort_model_load_duration_seconds")
                        .Help("How long loading the model took")
                        .Register(registry)),
      load_failures(BuildCounter()
                        .Name("longshort_model_load_failures_total")
                        .Help("Versions that could not be loaded while the server ran")
                        .Register(registry)
                        .Add({})),
      token_file_failures(BuildCounter()
                              .Name("longshort_token_file_failures_total")
                              .Help("New contents of --token-file that were wrong; what was before still holds")
                              .Register(registry)
                              .Add({})),
      refused_connections(BuildCounter()
                              .Name("longshort_connections_refused_total")
                              .Help("gRPC connections closed at once because the process had no descriptors for more")
                              .Register(registry)
                              .Add({})),
      open_connections(BuildGauge()
                           .Name("longshort_connections_open")
                           .Help("gRPC connections, counted a few times a second")
                           .Register(registry)
                           .Add({})),
      memory_limit(BuildGauge()
                       .Name("longshort_memory_limit_bytes")
                       .Help("Memory that the process may have: the machine's, or the cgroup's limit")
                       .Register(registry)
                       .Add({})),
      closed_connections(BuildCounter()
                             .Name("longshort_connections_closed_total")
                             .Help("gRPC connections closed because their clients took without giving")
                             .Register(registry)),
      tls_expiry(
          BuildGauge()
              .Name("longshort_tls_certificate_expiry_seconds")
              .Help("When it expires, unix time: the server's certificate, clients' authorities, revocation lists")
              .Register(registry)),
      exported_spans(BuildCounter()
                         .Name("longshort_spans_exported_total")
                         .Help("Spans that the collector of traces has taken")
                         .Register(registry)
                         .Add({})),
      dropped_spans(BuildCounter()
                        .Name("longshort_spans_dropped_total")
                        .Help("Spans of recorded calls that were not exported, by reason")
                        .Register(registry)),
      failed_span_exports(BuildCounter()
                              .Name("longshort_span_export_failures_total")
                              .Help("Tries to export spans that failed; most are tried again")
                              .Register(registry)
                              .Add({})) {
  // From 0 on, so that the first one is an increase.
  for (const char* reason : {"calls", "bytes", "stalled"}) closed_connections.Add({{"reason", reason}});
  BuildGauge()
      .Name("longshort_build_info")
      .Help("Always 1; the labels say what runs")
      .Register(registry)
      .Add({{"version", std::string(kVersion)}, {"compiler", __VERSION__}})
      .Set(1);
}

}  // namespace longshort
