#include "server/options/tracing_options.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"

namespace longshort::server {
namespace {

constexpr char kHttpProtobuf[] = "http/protobuf";
constexpr char kTracesPath[] = "/v1/traces";
constexpr OptionRange<int64_t> kSpans = {1, int64_t{1} << 20};
constexpr OptionRange<int64_t> kMilliseconds = {1, 3'600'000};

// Placeholder in the names of variables that have a second form, for traces only.
constexpr char kOfTraces[] = "[TRACES_]";

constexpr char kEndpoint[] = "OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT";
constexpr char kInsecure[] = "OTEL_EXPORTER_OTLP_[TRACES_]INSECURE";
constexpr char kCertificate[] = "OTEL_EXPORTER_OTLP_[TRACES_]CERTIFICATE";
constexpr char kClientCertificate[] = "OTEL_EXPORTER_OTLP_[TRACES_]CLIENT_CERTIFICATE";
constexpr char kClientKey[] = "OTEL_EXPORTER_OTLP_[TRACES_]CLIENT_KEY";
constexpr char kProtocol[] = "OTEL_EXPORTER_OTLP_[TRACES_]PROTOCOL";
constexpr char kExporter[] = "OTEL_TRACES_EXPORTER";
constexpr char kDisabled[] = "OTEL_SDK_DISABLED";

// The hint of variables that are lists of pairs.
constexpr char kPairs[] = "KEY=VALUE,...";

struct Variable {
  std::string name;
  std::string value;
};

// Finds a variable. An empty value counts as unset. The form for traces overrides the general one.
Variable Find(const Environment& environment, const std::string& name) {
  const auto find = [&](const char* form) {
    std::string full_name = absl::StrReplaceAll(name, {{kOfTraces, form}});
    std::string value = environment(full_name.c_str()).value_or("");
    return Variable{.name = std::move(full_name), .value = std::move(value)};
  };
  Variable of_traces = find("TRACES_");
  return of_traces.value.empty() ? find("") : of_traces;
}

std::string WordOf(const Environment& environment, const std::string& name) {
  return absl::AsciiStrToLower(Find(environment, name).value);
}

absl::Status Wrong(const std::string& name, const std::string& value, const std::string& must) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", value, "'; ", must));
}

bool Lists(const std::string& list, absl::string_view word) {
  for (const absl::string_view one : absl::StrSplit(list, ',')) {
    if (absl::StripAsciiWhitespace(one) == word) return true;
  }
  return false;
}

void UseUrl(const CollectorUrl& url, bool tls_without_scheme, TracingOptions& options) {
  options.endpoint = url.address.ToString();
  options.path = url.path.empty() ? "/" : url.path;
  options.tls = url.scheme.empty() ? tls_without_scheme : url.scheme == "https";
}

// Returns the URL for traces, whose path is below that of the base URL.
CollectorUrl ForTraces(CollectorUrl url) {
  url.path = absl::StrCat(absl::StripSuffix(url.path, "/"), kTracesPath);
  return url;
}

absl::Status UseOption(const std::string& text, TracingOptions& options) {
  absl::StatusOr<CollectorUrl> url = ParseCollectorUrl(text);
  if (!url.ok()) return Wrong("--otlp-endpoint", text, std::string(url.status().message()));
  const bool is_base = url->path.empty() || url->path == "/";
  UseUrl(is_base ? ForTraces(*url) : *url, false, options);
  return absl::OkStatus();
}

bool IsSwitchedOff(const Environment& environment) {
  return WordOf(environment, kDisabled) == "true" || WordOf(environment, kExporter) == "none";
}

// Errors: the variable cannot be used, and there are no traces.
absl::Status UseVariables(const Environment& environment, TracingOptions& options) {
  if (IsSwitchedOff(environment)) return absl::OkStatus();
  const std::string exporters = WordOf(environment, kExporter);
  auto [name, text] = Find(environment, kEndpoint);
  if (text.empty() && Lists(exporters, "otlp")) text = "http://localhost:4318";
  if (text.empty()) return absl::OkStatus();
  if (!exporters.empty() && !Lists(exporters, "otlp")) {
    return Wrong(kExporter, exporters, "this server supports only otlp; none switches traces off");
  }
  absl::StatusOr<CollectorUrl> url = ParseCollectorUrl(text);
  if (!url.ok()) {
    // The log does not get a password.
    if (absl::StrContains(text, '@')) text = absl::StrCat("...", text.substr(text.rfind('@')));
    return Wrong(name, text, std::string(url.status().message()));
  }
  const bool is_base = !absl::StrContains(name, "TRACES_");
  UseUrl(is_base ? ForTraces(*url) : *url, WordOf(environment, kInsecure) != "true", options);
  return absl::OkStatus();
}

// The files need not be right yet: the exporter reads them before each attempt.
void UseTlsFiles(const Environment& environment, TracingOptions& options) {
  if (!options.tls) return;
  const auto file = [&](const char* name) {
    Variable found = Find(environment, name);
    return PemFile{.option = std::move(found.name), .path = std::move(found.value)};
  };
  options.tls_files = {
      .authorities = file(kCertificate), .certificate = file(kClientCertificate), .key = file(kClientKey)};
  if (const absl::Status status = ReadCollectorPems(options.tls_files).status(); !status.ok()) {
    options.warnings.push_back(
        absl::StrCat(std::string(status.message()), "; no traces are exported until it is right"));
  }
}

absl::StatusOr<std::string> Decode(absl::string_view text) {
  std::optional<std::string> decoded = DecodePercent({text.data(), text.size()});
  if (!decoded.has_value()) {
    return absl::InvalidArgumentError("has a % that is not followed by two hexadecimal digits; write % as %25");
  }
  if (!IsUtf8(*decoded)) return absl::InvalidArgumentError("has a value that is not UTF-8");
  return *std::move(decoded);
}

// Parses "key=value,key=value", percent-encoded, the form of OpenTelemetry's variables. Ignores empty members, and
// spaces around keys and values. Errors: INVALID_ARGUMENT with a message that completes the sentence "NAME ...".
absl::StatusOr<TextPairs> ParseTextPairs(absl::string_view text) {
  TextPairs pairs;
  for (const absl::string_view member : absl::StrSplit(text, ',')) {
    if (absl::StripAsciiWhitespace(member).empty()) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(member, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    if (key.empty() || member.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError("has a member without a key or without '='; the form is key=value,key=value");
    }
    LS_ASSIGN_OR_RETURN(std::string decoded_key, Decode(key));
    LS_ASSIGN_OR_RETURN(std::string value, Decode(absl::StripAsciiWhitespace(parts.second)));
    pairs.emplace_back(std::move(decoded_key), std::move(value));
  }
  return pairs;
}

absl::Status ReadHeaders(const std::string& text, TextPairs& headers) {
  LS_ASSIGN_OR_RETURN(TextPairs pairs, ParseTextPairs(text));
  for (auto& [key, value] : pairs) {
    absl::AsciiStrToLower(&key);
    const bool fine = std::all_of(key.begin(), key.end(), [](char c) {
      return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-' || c == '.';
    });
    if (!fine) {
      return absl::InvalidArgumentError(
          "has a key that cannot be the name of an HTTP field: use letters, digits, '_', '-' and '.'");
    }
    if (!std::all_of(value.begin(), value.end(), [](char c) { return absl::ascii_isprint(c); })) {
      return absl::InvalidArgumentError(
          absl::StrCat("has a value with characters other than printable ASCII, for the key ", key));
    }
  }
  headers = std::move(pairs);
  return absl::OkStatus();
}

absl::Status ReadSampler(const std::string& sampler, TracingOptions& options) {
  const absl::string_view root = absl::StripPrefix(sampler, "parentbased_");
  if (root != "always_on" && root != "always_off" && root != "traceidratio") {
    return absl::InvalidArgumentError(
        "must be always_on, always_off or traceidratio, or one of these with the prefix parentbased_");
  }
  options.parent_based = absl::StartsWith(sampler, "parentbased_");
  if (root == "always_off") options.ratio = 0;
  return absl::OkStatus();
}

absl::Status ReadRatio(const std::string& text, TracingOptions& options) {
  double ratio = 0;
  if (!absl::SimpleAtod(text, &ratio) || !kTraceSampleRatio.Holds(ratio)) {
    return absl::InvalidArgumentError(absl::StrCat("must be a number ", kTraceSampleRatio.Rule()));
  }
  options.ratio = ratio;
  return absl::OkStatus();
}

absl::Status ReadPropagators(const std::string& propagators, TracingOptions& options) {
  if (Lists(propagators, "tracecontext")) return absl::OkStatus();
  if (propagators != "none") {
    return absl::InvalidArgumentError("this server supports only tracecontext: the list must contain it, or be none");
  }
  options.continues_traces = false;
  return absl::OkStatus();
}

absl::Status ReadWhole(const std::string& text, const OptionRange<int64_t>& range, int64_t* value) {
  int64_t read = 0;
  if (!absl::SimpleAtoi(text, &read) || !range.Holds(read)) {
    return absl::InvalidArgumentError(absl::StrCat("must be a whole number ", range.Rule()));
  }
  *value = read;
  return absl::OkStatus();
}

void AddMilliseconds(OptionTable& table, const char* name, const char* help, absl::Duration* value) {
  table.Add({.name = name,
             .hint = "MILLISECONDS",
             .default_text = absl::StrCat(absl::ToInt64Milliseconds(*value)),
             .range = kMilliseconds.Text(),
             .help = help,
             .reader = [value](const std::string& text) {
               int64_t milliseconds = 0;
               LS_RETURN_IF_ERROR(ReadWhole(text, kMilliseconds, &milliseconds));
               *value = absl::Milliseconds(milliseconds);
               return absl::OkStatus();
             }});
}

// The variables, in the order in which they are read. UseVariables and UseTlsFiles read those without a reader, which
// depend on others. A reader that fails changes nothing. Its error begins with "must", or with "has" (where the value
// may be secret and is not shown), or is a complete sentence.
OptionTable VariableTable(const Environment& environment, TracingOptions& options) {
  OptionTable table;
  const auto in_words = [](auto reader) {  // case does not matter
    return [reader](const std::string& text) { return reader(absl::AsciiStrToLower(text)); };
  };
  table.BeginSection("Environment variables of OpenTelemetry:");
  table.AddCustom(
      kEndpoint, "URL", "",
      "The collector. A name with TRACES_ overrides the one without, here and below. Without http:// or https:// the "
      "server uses TLS, unless OTEL_EXPORTER_OTLP_[TRACES_]INSECURE is true. The server adds /v1/traces to the URL of "
      "the name without TRACES_.",
      nullptr);
  table.AddCustom(kInsecure, "true|false", "false", "Whether an endpoint without http:// or https:// does not use TLS.",
                  nullptr);
  table.AddCustom(kExporter, "otlp|none", "",
                  "otlp without an endpoint exports to http://localhost:4318. none switches off the export that other "
                  "variables request. In a list, the server uses otlp only.",
                  [](const std::string& text) -> absl::Status {
                    const std::string word = absl::AsciiStrToLower(text);
                    if (word == "otlp" || word == "none") return absl::OkStatus();
                    return absl::InvalidArgumentError("this server exports traces only by otlp");
                  });
  table.AddCustom(kDisabled, "true|false", "false", "true switches off the export that other variables request.",
                  nullptr);
  table.AddCustom(
      "OTEL_TRACES_SAMPLER", "SAMPLER", "parentbased_always_on",
      "parentbased_...: the client decides for traces that it began. Without the prefix the server decides. "
      "--trace-sample-ratio is parentbased_traceidratio.",
      in_words([&options](const std::string& text) { return ReadSampler(text, options); }));
  table.Add({.name = "OTEL_TRACES_SAMPLER_ARG",
             .hint = "R",
             .default_text = "1",
             .range = kTraceSampleRatio.Text(),
             .help = "Ratio of the traces that traceidratio records.",
             .reader = [&environment, &options](const std::string& text) {
               const bool counts = absl::EndsWith(WordOf(environment, "OTEL_TRACES_SAMPLER"), "traceidratio");
               return counts ? ReadRatio(text, options) : absl::OkStatus();
             }});
  table.AddCustom(
      kProtocol, kHttpProtobuf, kHttpProtobuf,
      "The only protocol of the server, which collectors take at port 4318 by default.",
      in_words([](const std::string& text) {
        if (text == kHttpProtobuf) return absl::OkStatus();
        return absl::InvalidArgumentError(
            "this server exports only by http/protobuf, by default to port 4318: set http/protobuf, and the endpoint "
            "to the collector's port for HTTP");
      }));
  table.AddCustom("OTEL_EXPORTER_OTLP_[TRACES_]COMPRESSION", "gzip|none", "none", "Compression of the export.",
                  in_words([&options](const std::string& text) {
                    if (text != "gzip" && text != "none") return absl::InvalidArgumentError("must be gzip or none");
                    options.gzip = text == "gzip";
                    return absl::OkStatus();
                  }));
  AddMilliseconds(table, "OTEL_EXPORTER_OTLP_[TRACES_]TIMEOUT", "Timeout of one attempt to export.", &options.timeout);
  table.AddCustom(
      kCertificate, "FILE", "",
      "PEM file of the certificate authorities for the collector; by default the system's. The server reads "
      "this file and the next two again when they change.",
      nullptr);
  table.AddCustom(kClientCertificate, "FILE", "",
                  "PEM file of the certificate that the server presents to the collector.", nullptr);
  table.AddCustom(kClientKey, "FILE", "", "PEM file of that certificate's private key.", nullptr);
  table.AddCustom("OTEL_EXPORTER_OTLP_[TRACES_]HEADERS", kPairs, "", "HTTP fields for the collector, percent-encoded.",
                  [&options](const std::string& text) { return ReadHeaders(text, options.headers); });
  table.AddCustom("OTEL_PROPAGATORS", "LIST", "tracecontext",
                  "A list with tracecontext, or none: then the server does not continue clients' traces.",
                  in_words([&options](const std::string& text) { return ReadPropagators(text, options); }));
  table.Add({.name = "OTEL_BSP_MAX_QUEUE_SIZE",
             .hint = "N",
             .default_text = absl::StrCat(options.max_spans),
             .range = kSpans.Text(),
             .help = "Maximum number of spans in the export queue.",
             .reader = [&options](const std::string& text) { return ReadWhole(text, kSpans, &options.max_spans); }});
  table.Add({.name = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
             .hint = "N",
             .default_text = absl::StrCat(options.batch_spans),
             .range = "1 to OTEL_BSP_MAX_QUEUE_SIZE",
             .help = "Maximum number of spans in one export; the spans of a call are exported together.",
             .reader = [&options](const std::string& text) {
               return ReadWhole(text, {kSpans.low, options.max_spans}, &options.batch_spans);
             }});
  AddMilliseconds(table, "OTEL_BSP_SCHEDULE_DELAY", "How long an incomplete batch waits for more spans.",
                  &options.delay);
  AddMilliseconds(table, "OTEL_BSP_EXPORT_TIMEOUT", "Timeout of all attempts to export one batch.",
                  &options.export_timeout);
  table.AddCustom("OTEL_RESOURCE_ATTRIBUTES", kPairs, "",
                  "Attributes that identify the server, percent-encoded, in addition to service.name, service.version, "
                  "service.instance.id and telemetry.sdk.*.",
                  [&options](const std::string& text) -> absl::Status {
                    LS_ASSIGN_OR_RETURN(options.resource, ParseTextPairs(text));
                    return absl::OkStatus();
                  });
  table.AddCustom("OTEL_SERVICE_NAME", "NAME", "longshort-server", "The resource attribute service.name.",
                  [&options](const std::string& text) {
                    options.resource.emplace_back("service.name", text);
                    return absl::OkStatus();
                  });
  return table;
}

absl::Status ReadVariable(const Environment& environment, const OptionTable::Option& row) {
  const auto [name, value] = Find(environment, row.name);
  if (value.empty() || row.reader == nullptr) return absl::OkStatus();
  const absl::Status status = row.reader(value);
  if (status.ok()) return absl::OkStatus();
  const std::string why(status.message());
  // The pairs may contain secrets, so the message leaves them out.
  if (row.hint == kPairs) return absl::InvalidArgumentError(absl::StrCat(name, " ", why));
  return Wrong(name, value, absl::StrCat(absl::StartsWith(why, "must ") ? "it " : "", why));
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string TracingOptions::Summary() const {
  return absl::StrCat("to ", endpoint, path, tls ? ", over TLS, " : ", ", 100 * ratio,
                      parent_based ? " % of those that begin here" : " % of all");
}

absl::StatusOr<TracingOptions> ReadTracingOptions(const std::string& otlp_endpoint,
                                                  std::optional<double> trace_sample_ratio,
                                                  const Environment& environment) {
  TracingOptions options;
  const auto warn = [&options](const absl::Status& status) {
    if (!status.ok()) options.warnings.emplace_back(status.message());
  };
  if (!otlp_endpoint.empty()) {
    LS_RETURN_IF_ERROR(UseOption(otlp_endpoint, options));
  } else {
    warn(UseVariables(environment, options));
  }
  if (options.endpoint.empty()) {
    if (!trace_sample_ratio.has_value() || !options.warnings.empty() || IsSwitchedOff(environment)) return options;
    return absl::InvalidArgumentError(
        "--trace-sample-ratio needs --otlp-endpoint (or OTEL_EXPORTER_OTLP_ENDPOINT): there is no collector");
  }
  const OptionTable table = VariableTable(environment, options);
  for (const OptionTable::Option& row : table.options()) {
    const bool is_overruled = (trace_sample_ratio.has_value() && absl::StartsWith(row.name, "OTEL_TRACES_SAMPLER")) ||
                              (!otlp_endpoint.empty() && row.name == kExporter);
    if (!is_overruled) warn(ReadVariable(environment, row));
  }
  options.ratio = trace_sample_ratio.value_or(options.ratio);
  options.batch_spans = std::min(options.batch_spans, options.max_spans);
  UseTlsFiles(environment, options);
  return options;
}

std::string TracingVariablesMarkdown() {
  const Environment environment;
  TracingOptions options;
  return VariableTable(environment, options).Markdown([](const OptionTable::Option& row) {
    return absl::StrCat(row.name, "=", row.hint);
  });
}

}  // namespace longshort::server
