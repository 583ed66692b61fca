#include "server/monitoring/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>

#include "longshort_version.h"

namespace longshort::server {

MetricFamilies::MetricFamilies(std::vector<double> latency_bucket_bounds)
    : latency_buckets(std::move(latency_bucket_bounds)) {
  // Series begin at 0, so that the first event is an increase.
  for (const char* reason : {"calls", "bytes", "pings", "stalled", "room", "pace", "failure"})
    closed_connections.Add({{"reason", reason}});
  NewGauges("longshort_build_info", "Always 1; the labels have the version and the compiler")
      .Add({{"version", std::string(kVersion)}, {"compiler", __VERSION__}})
      .Set(1);
}

ServerMetrics::ServerMetrics(std::vector<double> latency_buckets, const Clock& clock)
    : clock_(clock),
      families_(std::move(latency_buckets)),
      dropped_spans_({&families_.dropped_spans.Add({{"reason", "queue_full"}}),
                      &families_.dropped_spans.Add({{"reason", "call_limit"}}),
                      &families_.dropped_spans.Add({{"reason", "export_failed"}}),
                      &families_.dropped_spans.Add({{"reason", "rejected"}})}),
      series_of_versions_(clock) {}

void ServerMetrics::CountRequest(const CallLabels& labels, absl::StatusCode code, absl::Duration duration) {
  const MutexLock lock(mutex_);  // RemoveModel may remove the metrics found below
  const RequestMetrics& metrics = FindRequestMetrics(labels, code);
  metrics.requests.Increment();
  metrics.duration.Observe(absl::ToDoubleSeconds(duration));
}

ServerMetrics::RequestMetrics& ServerMetrics::FindRequestMetrics(const CallLabels& labels, absl::StatusCode code) {
  const int64_t version = served_.count({labels.model, labels.version}) > 0 ? labels.version : 0;
  const std::tuple key(labels.rpc, labels.model, version, code);
  if (const auto found = found_.find(key); found != found_.end()) return found->second;
  const std::string label = version == 0 ? "" : std::to_string(version);
  const RequestMetrics metrics = {
      families_.requests.Add(
          {{"rpc", labels.rpc}, {"model", labels.model}, {"version", label}, {"code", absl::StatusCodeToString(code)}}),
      families_.request_duration.Add({{"rpc", labels.rpc}, {"model", labels.model}, {"version", label}},
                                     families_.latency_buckets)};
  families_.slow_readers.Add({{"rpc", labels.rpc}});  // begins at 0, before the first one
  return found_.emplace(key, metrics).first->second;
}

void ServerMetrics::CountIdentity(const std::string& label, absl::StatusCode code, int64_t tokens) {
  const IdentityMetrics metrics = FindIdentityMetrics(label, code);
  metrics.requests.Increment();
  metrics.tokens.Increment(static_cast<double>(tokens));
}

ServerMetrics::IdentityMetrics ServerMetrics::FindIdentityMetrics(const std::string& label, absl::StatusCode code) {
  std::pair key(label, code);
  const MutexLock lock(mutex_);
  if (const auto found = found_identities_.find(key); found != found_identities_.end()) return found->second;
  const IdentityMetrics metrics = {
      families_.identity_requests.Add({{"identity", label}, {"code", absl::StatusCodeToString(code)}}),
      families_.identity_tokens.Add({{"identity", label}})};
  found_identities_.emplace(std::move(key), metrics);
  return metrics;
}

void ServerMetrics::SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration) {
  families_.load_duration.Add({{"model", model}, {"version", std::to_string(version)}})
      .Set(absl::ToDoubleSeconds(duration));
  const MutexLock lock(mutex_);
  served_.emplace(model, version);
  unloaded_.erase({model, version});
}

void ServerMetrics::RemoveModel(const std::string& model, int64_t version) {
  {
    const MutexLock lock(mutex_);
    unloaded_.insert_or_assign({model, version}, clock_.Now());
  }
  // Their number is bounded, even if nothing reads the metrics.
  series_of_versions_.RemoveUnheld(absl::InfinitePast(), kMaxUnloaded);
  RemoveUnloaded(absl::InfinitePast());
}

void ServerMetrics::RemoveSeries(const std::pair<std::string, int64_t>& version) {
  families_.load_duration.Remove(
      &families_.load_duration.Add({{"model", version.first}, {"version", std::to_string(version.second)}}));
  served_.erase(version);
  unloaded_.erase(version);
  std::set<prometheus::Histogram*> durations;  // several codes share one
  for (auto entry = found_.begin(); entry != found_.end();) {
    if (std::get<1>(entry->first) != version.first || std::get<2>(entry->first) != version.second) {
      ++entry;
      continue;
    }
    families_.requests.Remove(&entry->second.requests);
    durations.insert(&entry->second.duration);
    entry = found_.erase(entry);
  }
  for (prometheus::Histogram* duration : durations) families_.request_duration.Remove(duration);
}

void ServerMetrics::SetTlsExpiry(const std::string& file, absl::Time expiry) {
  if (expiry == absl::InfiniteFuture()) return;
  families_.tls_expiry.Add({{"file", file}}).Set(static_cast<double>(absl::ToUnixSeconds(expiry)));
}

std::string ServerMetrics::Serialize() {
  const absl::Time old = clock_.Now() - kKeptAfterUnload;
  std::vector<prometheus::MetricFamily> families = families_.registry.Collect();
  for (prometheus::MetricFamily& family : CollectProcessMetrics()) families.push_back(std::move(family));
  // Now they have been shown at least once.
  series_of_versions_.RemoveUnheld(old, kMaxUnloaded);
  RemoveUnloaded(old);
  return prometheus::TextSerializer().Serialize(families);
}

void ServerMetrics::RemoveUnloaded(absl::Time time) {
  const MutexLock lock(mutex_);
  std::vector<std::pair<absl::Time, std::pair<std::string, int64_t>>> unloaded;
  unloaded.reserve(unloaded_.size());
  for (const auto& [version, since] : unloaded_) unloaded.emplace_back(since, version);
  std::sort(unloaded.rbegin(), unloaded.rend());  // the latest first
  for (size_t i = 0; i < unloaded.size(); ++i) {
    if (i >= kMaxUnloaded || unloaded[i].first < time) RemoveSeries(unloaded[i].second);
  }
}

}  // namespace longshort::server
