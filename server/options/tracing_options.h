// Export of traces: the collector and the sampling, from the command line and from OpenTelemetry's environment
// variables, which all programs of a machine or a cluster may share. An option overrides its variable.
//
// Without --otlp-endpoint, OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT and OTEL_TRACES_EXPORTER=otlp the server records no
// traces and ignores the other variables. A variable that the server cannot use is ignored with a warning, as
// OpenTelemetry demands: operators of a cluster set variables for all of its programs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "server/options/collector.h"

namespace longshort::server {

// Range of --trace-sample-ratio and OTEL_TRACES_SAMPLER_ARG.
inline constexpr OptionRange<double> kTraceSampleRatio = {0, 1};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct TracingOptions {
  // The collector, host:port. Empty: no traces.
  std::string endpoint = {};
  std::string path = {};  // "/v1/traces"
  // Whether the connection uses TLS, and its files, which the exporter reads again when they change.
  bool tls = false;
  CollectorTlsFiles tls_files = {};
  // HTTP fields of every export. Keys are lower-case.
  TextPairs headers = {};
  bool gzip = false;
  // Timeouts of one attempt to export, and of all attempts to export one batch.
  absl::Duration timeout = absl::Seconds(10);
  absl::Duration export_timeout = absl::Seconds(30);

  // See TraceSampler (server/monitoring/tracer.h).
  double ratio = 1;
  bool parent_based = true;
  // Whether calls continue the traces of their clients.
  bool continues_traces = true;

  // Maximum number of spans in the queue and in one export. The spans of a call stay together: a call with more than
  // `batch_spans` spans is exported alone.
  int64_t max_spans = 2048;
  int64_t batch_spans = 512;
  // How long an incomplete batch waits for more spans.
  absl::Duration delay = absl::Seconds(5);

  // Attributes that identify the server: OTEL_RESOURCE_ATTRIBUTES, and OTEL_SERVICE_NAME as service.name.
  TextPairs resource = {};

  // Variables that are set and not used, each with its value and the reason.
  std::vector<std::string> warnings = {};

  // For people: "to HOST:PORT/PATH, over TLS, 10 % of those that begin here".
  std::string Summary() const;
};

// Returns the value of a variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();

// Errors: INVALID_ARGUMENT naming the option, its value, and the valid values. Wrong variables are in `warnings`.
absl::StatusOr<TracingOptions> ReadTracingOptions(const std::string& otlp_endpoint,
                                                  std::optional<double> trace_sample_ratio,
                                                  const Environment& environment);

// The variables as a Markdown table, for the docs.
std::string TracingVariablesMarkdown();

}  // namespace longshort::server
