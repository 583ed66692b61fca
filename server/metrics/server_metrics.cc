#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "server/metrics/process_metrics.h"

namespace longshort {

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
  const RequestMetrics metrics = {
      families_.requests.Add({{"rpc", rpc}, {"model", model}, {"code", CodeName(code)}}),
      families_.request_duration.Add({{"rpc", rpc}, {"model", model}}, families_.latency_buckets)};
  families_.slow_readers.Add({{"rpc", rpc}});  // is there, at 0, before there are any
  found_.emplace(std::move(key), metrics);
  return metrics;
}

void ServerMetrics::CountIdentity(const std::string& label, absl::StatusCode code, int64_t tokens) {
  const IdentityMetrics metrics = FindIdentityMetrics(label, code);
  metrics.requests.Increment();
  metrics.tokens.Increment(static_cast<double>(tokens));
}

ServerMetrics::IdentityMetrics ServerMetrics::FindIdentityMetrics(const std::string& label, absl::StatusCode code) {
  std::pair key(label, code);
  const std::lock_guard lock(mutex_);
  if (const auto found = found_identities_.find(key); found != found_identities_.end()) return found->second;
  const IdentityMetrics metrics = {families_.identity_requests.Add({{"identity", label}, {"code", CodeName(code)}}),
                                   families_.identity_tokens.Add({{"identity", label}})};
  found_identities_.emplace(std::move(key), metrics);
  return metrics;
}

void ServerMetrics::SetModelLoadDuration(const std::string& model, int64_t version, absl::Duration duration) {
  families_.load_duration.Add({{"model", model}, {"version", std::to_string(version)}})
      .Set(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::ForgetModel(const std::string& model, int64_t version) {
  families_.load_duration.Remove(
      &families_.load_duration.Add({{"model", model}, {"version", std::to_string(version)}}));
}

void ServerMetrics::SetTlsExpiry(const std::string& file, absl::Time expiry) {
  if (expiry == absl::InfiniteFuture()) return;
  families_.tls_expiry.Add({{"file", file}}).Set(static_cast<double>(absl::ToUnixSeconds(expiry)));
}

std::string ServerMetrics::Serialize() const {
  std::vector<prometheus::MetricFamily> families = families_.registry.Collect();
  for (prometheus::MetricFamily& family : CollectProcessMetrics()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace longshort
