#include "server/options/tracing_options.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/pem_files.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/options/listen_address.h"

namespace longshort {
namespace {

constexpr char kDefaultEndpoint[] = "http://localhost:4317";
constexpr int64_t kMostSpans = int64_t{1} << 20;
constexpr int64_t kMostMilliseconds = 3'600'000;

// The variables. An empty one is as if it were not set.
class Variables final {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::string Text(const std::string& name) const { return environment_(name.c_str()).value_or(""); }
  std::string Word(const std::string& name) const { return absl::AsciiStrToLower(Text(name)); }
  bool True(const std::string& name) const { return Word(name) == "true"; }

  // That of OTEL_EXPORTER_OTLP_... that counts for traces, and its value: the traces' own if it is set.
  std::pair<std::string, std::string> OfExporter(const std::string& what) const {
    const std::string own = absl::StrCat("OTEL_EXPORTER_OTLP_TRACES_", what);
    if (std::string value = Text(own); !value.empty()) return {own, std::move(value)};
    const std::string common = absl::StrCat("OTEL_EXPORTER_OTLP_", what);
    return {common, Text(common)};
  }

  absl::Status ReadNumber(const std::string& name, int64_t least, int64_t most, int64_t* value) const {
    return ReadNumber(name, Text(name), least, most, value);
  }
  static absl::Status ReadNumber(const std::string& name, const std::string& text, int64_t least, int64_t most,
                                 int64_t* value) {
    if (text.empty()) return absl::OkStatus();
    if (absl::SimpleAtoi(text, value) && *value >= least && *value <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is '", text, "'; it must be a whole number in [", least, ", ", most, "]"));
  }
  static absl::Status ReadMilliseconds(const std::string& name, const std::string& text, absl::Duration* value) {
    int64_t milliseconds = absl::ToInt64Milliseconds(*value);
    LS_RETURN_IF_ERROR(ReadNumber(name, text, 1, kMostMilliseconds, &milliseconds));
    *value = absl::Milliseconds(milliseconds);
    return absl::OkStatus();
  }

 private:
  const Environment& environment_;
};

absl::Status Wrong(const std::string& name, const std::string& value, const std::string& must) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is '", value, "'; ", must));
}

// Endpoint and TLS. `tls_without_scheme`: what "host:port" means.
absl::Status ReadEndpoint(const std::string& name, const std::string& text, bool tls_without_scheme,
                          TracingOptions& options) {
  absl::string_view rest = text;
  options.tls = tls_without_scheme;
  if (absl::ConsumePrefix(&rest, "https://")) {
    options.tls = true;
  } else if (absl::ConsumePrefix(&rest, "http://")) {
    options.tls = false;
  }
  absl::ConsumeSuffix(&rest, "/");
  constexpr char kForm[] =
      "it must be host:port, http://host:port or https://host:port, of a collector's port for OTLP by gRPC (mostly "
      "4317)";
  if (absl::StrContains(rest, "/")) return Wrong(name, text, kForm);
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(std::string(rest));
  if (!address.ok() || address->port == 0) return Wrong(name, text, kForm);
  options.endpoint = address->ToString();
  return absl::OkStatus();
}

// The collector's address; none if nothing is to be traced.
absl::Status ChooseEndpoint(const std::string& option, const Variables& variables, TracingOptions& options) {
  if (!option.empty()) return ReadEndpoint("--otlp-endpoint", option, false, options);
  if (variables.True("OTEL_SDK_DISABLED")) return absl::OkStatus();
  const std::string exporter = variables.Word("OTEL_TRACES_EXPORTER");
  if (exporter == "none") return absl::OkStatus();
  auto [name, endpoint] = variables.OfExporter("ENDPOINT");
  if (endpoint.empty() && exporter == "otlp") endpoint = kDefaultEndpoint;
  if (endpoint.empty()) return absl::OkStatus();
  if (!exporter.empty() && exporter != "otlp") {
    return Wrong("OTEL_TRACES_EXPORTER", exporter, "this server has otlp only; none switches traces off");
  }
  const bool insecure = absl::AsciiStrToLower(variables.OfExporter("INSECURE").second) == "true";
  return ReadEndpoint(name, endpoint, !insecure, options);
}

absl::StatusOr<std::string> ReadPem(const std::string& name, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Wrong(name, path, "it must be a file that can be read");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::Status ReadTlsFiles(const Variables& variables, TracingOptions& options) {
  if (!options.tls) return absl::OkStatus();
  if (const auto [name, path] = variables.OfExporter("CERTIFICATE"); !path.empty()) {
    LS_ASSIGN_OR_RETURN(options.authorities_pem, ReadPem(name, path));
    if (ParseCertificates(options.authorities_pem).empty()) {
      return Wrong(name, path, "the file must have certificates, as PEM");
    }
  }
  const auto [certificate_name, certificate] = variables.OfExporter("CLIENT_CERTIFICATE");
  const auto [key_name, key] = variables.OfExporter("CLIENT_KEY");
  if (certificate.empty() != key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(certificate_name, " and ", key_name, " must be set both, or none"));
  }
  if (certificate.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(options.certificate_pem, ReadPem(certificate_name, certificate));
  if (ParseCertificates(options.certificate_pem).empty()) {
    return Wrong(certificate_name, certificate, "the file must have a certificate, as PEM");
  }
  LS_ASSIGN_OR_RETURN(const PrivateKey read, ReadPrivateKey({key_name, key}));
  options.key_pem = ToPem(*read);
  return absl::OkStatus();
}

// Undoes percent-encoding.
absl::StatusOr<std::string> Decode(absl::string_view text) {
  constexpr size_t kDigits = 2;
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, kDigits);
    if (digits.size() < kDigits || !absl::ascii_isxdigit(digits[0]) || !absl::ascii_isxdigit(digits[1])) {
      return absl::InvalidArgumentError("has a % without two hexadecimal digits behind it; write % as %25");
    }
    decoded += absl::HexStringToBytes(digits);
    i += kDigits;
  }
  if (!IsUtf8(decoded)) return absl::InvalidArgumentError("has a value that is not UTF-8");
  return decoded;
}

// "key=value,key=value", percent-encoded, as OpenTelemetry's variables have it. Empty members do not count, nor do
// spaces around keys and values. Errors: INVALID_ARGUMENT that completes the sentence "NAME ...".
absl::StatusOr<TextPairs> ParseTextPairs(absl::string_view text) {
  TextPairs pairs;
  for (const absl::string_view member : absl::StrSplit(text, ',')) {
    if (absl::StripAsciiWhitespace(member).empty()) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(member, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    if (key.empty() || member.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError("has a member without key or without '='; it must be key=value,key=value");
    }
    LS_ASSIGN_OR_RETURN(std::string decoded_key, Decode(key));
    LS_ASSIGN_OR_RETURN(std::string value, Decode(absl::StripAsciiWhitespace(parts.second)));
    pairs.emplace_back(std::move(decoded_key), std::move(value));
  }
  return pairs;
}

absl::Status ReadPairs(const std::string& name, const std::string& text, TextPairs& pairs) {
  absl::StatusOr<TextPairs> parsed = ParseTextPairs(text);
  // Not the value: headers have secrets.
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(name, " ", parsed.status().message()));
  pairs = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status ReadHeaders(const Variables& variables, TracingOptions& options) {
  const auto [name, text] = variables.OfExporter("HEADERS");
  LS_RETURN_IF_ERROR(ReadPairs(name, text, options.headers));
  for (auto& [key, value] : options.headers) {
    absl::AsciiStrToLower(&key);
    const bool fine = std::all_of(key.begin(), key.end(), [](char c) {
      return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-' || c == '.';
    });
    if (!fine || absl::StartsWith(key, "grpc-") || absl::EndsWith(key, "-bin")) {
      return absl::InvalidArgumentError(
          absl::StrCat(name,
                       " has a key that gRPC does not take as metadata: letters, digits, '_', '-' and '.', and "
                       "neither grpc-... nor ...-bin"));
    }
    if (!std::all_of(value.begin(), value.end(), [](char c) { return absl::ascii_isprint(c); })) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has a value that is not of printable ASCII characters, for the key ", key));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadProtocol(const Variables& variables, TracingOptions& options) {
  const auto [protocol_name, protocol] = variables.OfExporter("PROTOCOL");
  if (!protocol.empty() && absl::AsciiStrToLower(protocol) != "grpc") {
    return Wrong(
        protocol_name, protocol,
        "this server has grpc only: set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc and an endpoint that takes it, "
        "or OTEL_TRACES_EXPORTER=none");
  }
  const auto [compression_name, compression] = variables.OfExporter("COMPRESSION");
  const std::string word = absl::AsciiStrToLower(compression);
  if (!word.empty() && word != "gzip" && word != "none") {
    return Wrong(compression_name, compression, "it must be gzip or none");
  }
  options.gzip = word == "gzip";
  const auto [timeout_name, timeout] = variables.OfExporter("TIMEOUT");
  return Variables::ReadMilliseconds(timeout_name, timeout, &options.timeout);
}

absl::Status ReadSampler(std::optional<double> ratio, const Variables& variables, TracingOptions& options) {
  if (ratio.has_value()) return options.ratio = *ratio, absl::OkStatus();
  const std::string name = "OTEL_TRACES_SAMPLER";
  std::string sampler = variables.Word(name);
  if (sampler.empty()) return absl::OkStatus();
  options.parent_based = absl::StartsWith(sampler, "parentbased_");
  const std::string root(absl::StripPrefix(sampler, "parentbased_"));
  if (root == "always_on") return absl::OkStatus();
  if (root == "always_off") return options.ratio = 0, absl::OkStatus();
  if (root != "traceidratio") {
    return Wrong(name, sampler,
                 "it must be always_on, always_off or traceidratio, or one of these behind parentbased_");
  }
  const std::string argument = variables.Text("OTEL_TRACES_SAMPLER_ARG");
  if (argument.empty()) return absl::OkStatus();
  if (absl::SimpleAtod(argument, &options.ratio) && kTraceSampleRatio.Holds(options.ratio)) return absl::OkStatus();
  return Wrong("OTEL_TRACES_SAMPLER_ARG", argument, absl::StrCat("it must be a number ", kTraceSampleRatio.Rule()));
}

absl::Status ReadPropagators(const Variables& variables, TracingOptions& options) {
  const std::string name = "OTEL_PROPAGATORS";
  const std::string propagators = variables.Word(name);
  if (propagators.empty()) return absl::OkStatus();
  for (const absl::string_view one : absl::StrSplit(propagators, ',')) {
    if (absl::StripAsciiWhitespace(one) == "tracecontext") return absl::OkStatus();
  }
  if (propagators != "none") {
    return Wrong(name, propagators, "this server has tracecontext only: the list must have it, or be none");
  }
  options.continues_traces = false;
  return absl::OkStatus();
}

absl::Status ReadBatches(const Variables& variables, TracingOptions& options) {
  constexpr char kQueue[] = "OTEL_BSP_MAX_QUEUE_SIZE";
  constexpr char kBatch[] = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE";
  LS_RETURN_IF_ERROR(variables.ReadNumber(kQueue, 1, kMostSpans, &options.most_spans));
  options.batch_spans = std::min(options.batch_spans, options.most_spans);
  LS_RETURN_IF_ERROR(variables.ReadNumber(kBatch, 1, options.most_spans, &options.batch_spans));
  const std::string delay = "OTEL_BSP_SCHEDULE_DELAY";
  LS_RETURN_IF_ERROR(Variables::ReadMilliseconds(delay, variables.Text(delay), &options.delay));
  const std::string timeout = "OTEL_BSP_EXPORT_TIMEOUT";
  return Variables::ReadMilliseconds(timeout, variables.Text(timeout), &options.export_timeout);
}

absl::Status ReadResource(const Variables& variables, TracingOptions& options) {
  const std::string name = "OTEL_RESOURCE_ATTRIBUTES";
  LS_RETURN_IF_ERROR(ReadPairs(name, variables.Text(name), options.resource));
  if (const std::string service = variables.Text("OTEL_SERVICE_NAME"); !service.empty()) {
    options.resource.emplace_back("service.name", service);
  }
  return absl::OkStatus();
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
  return absl::StrCat("to ", endpoint, tls ? ", by TLS, " : ", ", 100 * ratio,
                      parent_based ? " % of those that begin here" : " % of all");
}

absl::StatusOr<TracingOptions> ReadTracingOptions(const std::string& otlp_endpoint,
                                                  std::optional<double> trace_sample_ratio,
                                                  const Environment& environment) {
  const Variables variables(environment);
  TracingOptions options;
  LS_RETURN_IF_ERROR(ChooseEndpoint(otlp_endpoint, variables, options));
  if (options.endpoint.empty()) {
    if (!trace_sample_ratio.has_value()) return options;
    return absl::InvalidArgumentError(
        "--trace-sample-ratio needs --otlp-endpoint (or OTEL_EXPORTER_OTLP_ENDPOINT): there is no collector");
  }
  LS_RETURN_IF_ERROR(ReadSampler(trace_sample_ratio, variables, options));
  LS_RETURN_IF_ERROR(ReadProtocol(variables, options));
  LS_RETURN_IF_ERROR(ReadTlsFiles(variables, options));
  LS_RETURN_IF_ERROR(ReadHeaders(variables, options));
  LS_RETURN_IF_ERROR(ReadPropagators(variables, options));
  LS_RETURN_IF_ERROR(ReadBatches(variables, options));
  LS_RETURN_IF_ERROR(ReadResource(variables, options));
  return options;
}

}  // namespace longshort
