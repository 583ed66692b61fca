// Where traces go and which: from the command line, and from the environment variables of OpenTelemetry, which all
// programs of a machine or a cluster may share. An option wins over the variable that says the same.
//
// Without --otlp-endpoint, OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT and OTEL_TRACES_EXPORTER=otlp nothing is traced, and
// the other variables are not looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/option_values.h"

namespace longshort::server {

// Of --trace-sample-ratio and OTEL_TRACES_SAMPLER_ARG.
inline constexpr OptionRange<double> kTraceSampleRatio = {0, 1};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct TracingOptions {
  // Of the collector, host:port. Empty: nothing is traced.
  std::string endpoint = {};
  // Whether it is spoken to by TLS; then the files of the authorities that it is known by (empty: the system's), and of
  // the certificate and key that are shown to it (empty: none). As they were at the start.
  bool tls = false;
  std::string authorities_pem = {};
  std::string certificate_pem = {};
  std::string key_pem = {};
  // Metadata of every call to it. Keys are lower-case.
  TextPairs headers = {};
  bool gzip = false;
  // Of one try; and of all tries to export a batch together.
  absl::Duration timeout = absl::Seconds(10);
  absl::Duration export_timeout = absl::Seconds(30);

  // See TraceSampler (server/monitoring/tracer.h).
  double ratio = 1;
  bool parent_based = true;
  // Whether calls go on with the traces that their clients say they belong to.
  bool continues_traces = true;

  // Spans that may wait, and that are exported at once. The spans of a call stay together: a call that has more by
  // itself is exported alone.
  int64_t max_spans = 2048;
  int64_t batch_spans = 512;
  // How long a batch that is not full waits for more.
  absl::Duration delay = absl::Seconds(5);

  // What says which server it was: OTEL_RESOURCE_ATTRIBUTES, and OTEL_SERVICE_NAME as service.name.
  TextPairs resource = {};

  // "to HOST:PORT, by TLS, 10 % of those that begin here", for people.
  std::string Summary() const;
};

// The value of a variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();

// Errors: INVALID_ARGUMENT naming the option or variable, its value, and what it must be. OpenTelemetry would have
// wrong variables passed over with a warning; then traces would be missing, and nobody would know before they are
// wanted.
absl::StatusOr<TracingOptions> ReadTracingOptions(const std::string& otlp_endpoint,
                                                  std::optional<double> trace_sample_ratio,
                                                  const Environment& environment);

// The table of the variables, for the docs.
std::string TracingVariablesMarkdown();

}  // namespace longshort::server
