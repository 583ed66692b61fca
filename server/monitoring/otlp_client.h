// Sends exports to a collector: OTLP over gRPC, or over HTTP with messages of Protobuf.
#pragma once

#include <grpcpp/grpcpp.h>

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
class OtlpClient {
 public:
  virtual ~OtlpClient() = default;
  // Sends an ExportTraceServiceRequest, and returns by `end` (MonotonicNow), or when the system has
  // resolved the collector's name.
  virtual OtlpAnswer Send(const std::string& request, absl::Time end) = 0;
  // Ends the Send in progress, and every later one, with CANCELLED.
  virtual void Cancel() = 0;
};

// A client of the collector with these PEM texts. Errors: the texts cannot be used.
absl::StatusOr<std::shared_ptr<OtlpClient>> MakeOtlpClient(const TracingOptions& options, const CollectorPems& pems);
absl::StatusOr<std::shared_ptr<OtlpClient>> MakeOtlpHttpClient(const TracingOptions& options,
                                                               const CollectorPems& pems);

// The minimum delay before a retry, by OTLP's specification; nullopt if the status is not retryable.
std::optional<absl::Duration> RetryAfter(const grpc::Status& status);
// The same for HTTP. `retry_after`: the field of that name, or empty.
std::optional<absl::Duration> RetryAfter(int http_status, const std::string& retry_after);

}  // namespace longshort::server
