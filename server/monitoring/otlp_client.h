// Sends exports to a collector: OTLP over HTTP, with messages of Protobuf.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

// What a collector said to one export.
struct OtlpAnswer {
  absl::Status status = absl::OkStatus();
  // The minimum delay before a retry; nullopt if the status is not retryable.
  std::optional<absl::Duration> retry = std::nullopt;
  std::string body = {};  // of an OK status: an ExportTraceServiceResponse, or what cannot be read as one
};

// Connects at the first export, and again after the connection is lost.
//
// Thread: one; Cancel may be called by any.
class OtlpClient final {
 public:
  // A client of the collector with these PEM texts. Errors: the texts cannot be used.
  static absl::StatusOr<std::shared_ptr<OtlpClient>> Make(const TracingOptions& options, const CollectorPems& pems);
  ~OtlpClient();
  OtlpClient(const OtlpClient&) = delete;
  OtlpClient& operator=(const OtlpClient&) = delete;

  // Sends an ExportTraceServiceRequest, and returns by `end` (MonotonicNow), or when the system has
  // resolved the collector's name.
  OtlpAnswer Send(const std::string& request, absl::Time end);
  // Ends the Send in progress, and every later one, with CANCELLED.
  void Cancel();

 private:
  class Link;

  OtlpClient(const TracingOptions& options, std::unique_ptr<Link> link);

  const TracingOptions options_;
  const std::unique_ptr<Link> link_;
};

// The minimum delay before a retry, by OTLP's specification; nullopt if the status is not retryable. `retry_after`:
// the field of that name, or empty.
std::optional<absl::Duration> RetryAfter(int http_status, const std::string& retry_after);

}  // namespace longshort::server
