#include "server/options/tracing_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/base/status_matchers.h"

namespace longshort::server::tracing_options_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

using Values = std::map<std::string, std::string>;

absl::StatusOr<TracingOptions> Read(Values values, const std::string& endpoint = "",
                                    std::optional<double> ratio = std::nullopt) {
  return ReadTracingOptions(endpoint, ratio, [&](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  });
}

// With an endpoint by option.
TracingOptions ReadMore(Values values) {
  const auto options = Read(std::move(values), "c:1");
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(TracingOptions());
}

std::string ErrorOf(Values values, const std::string& endpoint, std::optional<double> ratio = std::nullopt) {
  return RefusalOf(Read(std::move(values), endpoint, ratio));
}

// The only warning; the start goes on.
std::string WarningOf(Values values, const std::string& endpoint = "c:1") {
  const auto options = Read(std::move(values), endpoint);
  EXPECT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->warnings.size(), 1);
  return options->warnings.empty() ? "" : options->warnings.front();
}

TEST(TracingOptions, NothingIsTracedUnlessThereIsACollector) {
  EXPECT_EQ(Read({})->endpoint, "");
  EXPECT_EQ(Read({{"OTEL_SERVICE_NAME", "x"}, {"OTEL_TRACES_SAMPLER", "nonsense"}})->endpoint, "");
  EXPECT_EQ(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}})->endpoint, "");
}

TEST(TracingOptions, TheOptionNamesTheCollector) {
  EXPECT_EQ(Read({}, "c:4318")->endpoint, "c:4318");
  EXPECT_FALSE(Read({}, "c:4318")->tls);
  EXPECT_EQ(Read({}, "http://c:4318/")->endpoint, "c:4318");
  EXPECT_FALSE(Read({}, "http://c:4318")->tls);
  EXPECT_EQ(Read({}, "https://[::1]:4318")->endpoint, "[::1]:4318");
  EXPECT_TRUE(Read({}, "https://c:4318")->tls);
}

TEST(TracingOptions, SoDoTheVariablesInTheirOrder) {
  EXPECT_EQ(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1"}})->endpoint, "all:1");
  const Values both = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1"},
                       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1"}};
  EXPECT_EQ(Read(both)->endpoint, "traces:1");
  EXPECT_EQ(Read(both, "option:1")->endpoint, "option:1");
  EXPECT_EQ(Read({{"OTEL_TRACES_EXPORTER", "otlp"}})->endpoint, "localhost:4318");
}

// As OpenTelemetry has it: without a scheme, ..._INSECURE decides.
TEST(TracingOptions, AVariableWithoutSchemeIsTlsUnlessItIsSaidToBeInsecure) {
  Values values = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:1"}};
  EXPECT_TRUE(Read(values)->tls);
  values["OTEL_EXPORTER_OTLP_INSECURE"] = "True";
  EXPECT_FALSE(Read(values)->tls);
  values["OTEL_EXPORTER_OTLP_ENDPOINT"] = "https://c:1";
  EXPECT_TRUE(Read(values)->tls);
}

TEST(TracingOptions, VariablesSwitchOffWhatVariablesAskFor) {
  const std::pair<std::string, std::string> endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"};
  EXPECT_EQ(Read({endpoint, {"OTEL_SDK_DISABLED", "TRUE"}})->endpoint, "");
  EXPECT_EQ(Read({endpoint, {"OTEL_TRACES_EXPORTER", "none"}})->endpoint, "");
  EXPECT_EQ(Read({endpoint, {"OTEL_SDK_DISABLED", "no"}})->endpoint, "c:1");
  EXPECT_EQ(Read({{"OTEL_SDK_DISABLED", "true"}}, "c:1")->endpoint, "c:1");
  EXPECT_EQ(Read({endpoint, {"OTEL_SDK_DISABLED", "true"}}, "", 0.5)->endpoint, "");
}

TEST(TracingOptions, APasswordIsNotInTheWarning) {
  const std::string warning = WarningOf({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:word@c:1"}}, "");
  EXPECT_THAT(warning, HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT is '...@c:1'"));
  EXPECT_THAT(warning, ::testing::Not(HasSubstr("word")));
}

TEST(TracingOptions, AWrongEndpointIsRefusedWithItsName) {
  for (const char* endpoint : {"c", "c:", "c:0", "c:70000", "http://", "ftp://c:1", "http://user:word@c:1", ":1"}) {
    EXPECT_THAT(ErrorOf({}, endpoint), HasSubstr("--otlp-endpoint is '" + std::string(endpoint) + "'")) << endpoint;
  }
  EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c"}}, ""),
              HasSubstr("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is 'c'; it must be host:port"));
  EXPECT_EQ(Read({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c"}}, "", 0.5)->endpoint, "");
}

// Operators set variables for all programs of a cluster: none of them may end the start.
TEST(TracingOptions, WhatTheServerDoesNotHaveIsIgnoredWithAWarning) {
  for (const char* protocol : {"grpc", "http/json"}) {
    EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_PROTOCOL", protocol}}),
                HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL is '" + std::string(protocol) +
                          "'; this server exports only by http/protobuf, by default to port 4318: set http/protobuf"));
  }
  EXPECT_THAT(WarningOf({{"OTEL_TRACES_EXPORTER", "zipkin"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}}, ""),
              HasSubstr("supports only otlp"));
  EXPECT_THAT(WarningOf({{"OTEL_PROPAGATORS", "b3"}}), HasSubstr("supports only tracecontext"));
  EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"}}), HasSubstr("gzip or none"));
  EXPECT_THAT(WarningOf({{"OTEL_TRACES_SAMPLER", "parentbased_jaeger_remote"}}),
              HasSubstr("OTEL_TRACES_SAMPLER is 'parentbased_jaeger_remote'"));
}

TEST(TracingOptions, AnIgnoredVariableLeavesItsDefault) {
  const TracingOptions options = ReadMore({{"OTEL_TRACES_SAMPLER", "always_maybe"},
                                           {"OTEL_PROPAGATORS", "b3"},
                                           {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"},
                                           {"OTEL_EXPORTER_OTLP_HEADERS", "a=b,c d=e"},
                                           {"OTEL_BSP_MAX_QUEUE_SIZE", "0"}});
  EXPECT_EQ(options.warnings.size(), 5);
  EXPECT_TRUE(options.parent_based);
  EXPECT_TRUE(options.continues_traces);
  EXPECT_FALSE(options.gzip);
  EXPECT_TRUE(options.headers.empty());
  EXPECT_EQ(options.max_spans, 2048);
}

TEST(TracingOptions, OfSeveralExportersOtlpIsUsed) {
  const auto options = Read({{"OTEL_TRACES_EXPORTER", "console, OTLP"}});
  EXPECT_EQ(options->endpoint, "localhost:4318");
  EXPECT_THAT(options->warnings, ElementsAre(HasSubstr("OTEL_TRACES_EXPORTER is 'console, OTLP'")));
}

// The endpoint's variable is a base URL, unless it is that of traces.
TEST(TracingOptions, ThePathIsAddedToABaseUrl) {
  const auto where = [](Values values, const std::string& option = "") {
    const auto options = Read(std::move(values), option);
    EXPECT_TRUE(options.ok()) << options.status();
    EXPECT_TRUE(options->warnings.empty());
    return options->endpoint + options->path;
  };
  const Values http = {{"OTEL_EXPORTER_OTLP_PROTOCOL", "HTTP/protobuf"}};
  const auto with = [](Values values, const char* name, const char* value) { return values[name] = value, values; };
  EXPECT_EQ(where({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}}), "c:4318/v1/traces");
  EXPECT_EQ(where({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"}}), "c:4317/v1/traces");
  EXPECT_EQ(where({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/api/"}}), "c:443/api/v1/traces");
  EXPECT_EQ(where({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:80/t"}}), "c:80/t");
  EXPECT_EQ(where({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318"}}), "c:4318/");
  EXPECT_EQ(where(with(http, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:9")), "c:9/v1/traces");
  EXPECT_EQ(where(with(http, "OTEL_TRACES_EXPORTER", "otlp")), "localhost:4318/v1/traces");
  EXPECT_EQ(where({}, "http://c:4318"), "c:4318/v1/traces");
  EXPECT_EQ(where({}, "http://c:4318/"), "c:4318/v1/traces");
  EXPECT_EQ(where({}, "c:1/v1/traces"), "c:1/v1/traces");
  EXPECT_EQ(where(http, "c:1"), "c:1/v1/traces");
  EXPECT_EQ(where({}, "c:4317"), "c:4317/v1/traces");
}

TEST(TracingOptions, SamplersAreARatioAndWhetherParentsDecide) {
  const auto sampler = [](const std::string& name, const std::string& argument = "") {
    const TracingOptions options = ReadMore({{"OTEL_TRACES_SAMPLER", name}, {"OTEL_TRACES_SAMPLER_ARG", argument}});
    return std::pair(options.ratio, options.parent_based);
  };
  EXPECT_THAT(sampler(""), Pair(1, true));
  EXPECT_THAT(sampler("always_on"), Pair(1, false));
  EXPECT_THAT(sampler("always_off"), Pair(0, false));
  EXPECT_THAT(sampler("traceidratio", "0.25"), Pair(0.25, false));
  EXPECT_THAT(sampler("parentbased_always_on"), Pair(1, true));
  EXPECT_THAT(sampler("parentbased_always_off"), Pair(0, true));
  EXPECT_THAT(sampler("ParentBased_TraceIdRatio", "0.5"), Pair(0.5, true));
  EXPECT_THAT(sampler("parentbased_traceidratio"), Pair(1, true));
}

TEST(TracingOptions, TheRatiosOptionWins) {
  const auto options = Read({{"OTEL_TRACES_SAMPLER", "always_off"}}, "c:1", 0.5);
  EXPECT_EQ(options->ratio, 0.5);
  EXPECT_TRUE(options->parent_based);
}

TEST(TracingOptions, ARatioWithoutACollectorIsRefusedAndAWrongVariableIgnored) {
  EXPECT_THAT(ErrorOf({}, "", 0.5), HasSubstr("--trace-sample-ratio needs --otlp-endpoint"));
  for (const char* argument : {"2", "-1", "x", "nan"}) {
    EXPECT_THAT(WarningOf({{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", argument}}),
                HasSubstr("OTEL_TRACES_SAMPLER_ARG is '" + std::string(argument)));
  }
}

TEST(TracingOptions, NumbersAreMillisecondsAndSpans) {
  const TracingOptions options = ReadMore({{"OTEL_EXPORTER_OTLP_TIMEOUT", "1500"},
                                           {"OTEL_BSP_MAX_QUEUE_SIZE", "100"},
                                           {"OTEL_BSP_SCHEDULE_DELAY", "20"},
                                           {"OTEL_BSP_EXPORT_TIMEOUT", "700"}});
  EXPECT_EQ(options.timeout, absl::Milliseconds(1500));
  EXPECT_EQ(options.max_spans, 100);
  EXPECT_EQ(options.batch_spans, 100);  // the default is more than the queue
  EXPECT_EQ(options.delay, absl::Milliseconds(20));
  EXPECT_EQ(options.export_timeout, absl::Milliseconds(700));
  EXPECT_EQ(ReadMore({{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "7"}}).batch_spans, 7);
}

TEST(TracingOptions, WrongNumbersAreIgnored) {
  EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_TIMEOUT", "0"}}), HasSubstr("OTEL_EXPORTER_OTLP_TIMEOUT is '0'"));
  EXPECT_THAT(WarningOf({{"OTEL_BSP_SCHEDULE_DELAY", "5s"}}), HasSubstr("OTEL_BSP_SCHEDULE_DELAY is '5s'"));
  EXPECT_THAT(WarningOf({{"OTEL_BSP_MAX_QUEUE_SIZE", "-1"}}), HasSubstr("[1, 1048576]"));
  EXPECT_THAT(WarningOf({{"OTEL_BSP_MAX_QUEUE_SIZE", "10"}, {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "11"}}),
              HasSubstr("OTEL_BSP_MAX_EXPORT_BATCH_SIZE is '11'; it must be a whole number in [1, 10]"));
}

TEST(TracingOptions, HeadersAreLowerCaseAndDecoded) {
  const TracingOptions options = ReadMore({{"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20x , a=b=c"}});
  EXPECT_THAT(options.headers, ElementsAre(Pair("authorization", "Bearer x"), Pair("a", "b=c")));
}

TEST(TracingOptions, WrongHeadersAreIgnoredAndTheirValuesNotShown) {
  for (const char* headers : {"secret", "=secret", "a b=secret", "a=secret%0a"}) {
    const std::string error = WarningOf({{"OTEL_EXPORTER_OTLP_HEADERS", headers}});
    EXPECT_THAT(error, HasSubstr("OTEL_EXPORTER_OTLP_HEADERS has a ")) << headers;
    EXPECT_THAT(error, Not(HasSubstr("secret"))) << headers;
  }
}

TEST(TracingOptions, TheServicesNameIsSaidLast) {
  const TracingOptions options =
      ReadMore({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,k=%C3%A9"}, {"OTEL_SERVICE_NAME", "b"}});
  EXPECT_THAT(options.resource,
              ElementsAre(Pair("service.name", "a"), Pair("k", "\xC3\xA9"), Pair("service.name", "b")));
  EXPECT_THAT(WarningOf({{"OTEL_RESOURCE_ATTRIBUTES", "k=%zz"}}),
              HasSubstr("OTEL_RESOURCE_ATTRIBUTES has a % that is not followed"));
  EXPECT_THAT(WarningOf({{"OTEL_RESOURCE_ATTRIBUTES", "k=%ff"}}), HasSubstr("not UTF-8"));
}

// The exporter reads them again: they may be there later.
TEST(TracingOptions, MissingFilesOfTlsAreAWarning) {
  EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere"}}, "https://c:1"),
              HasSubstr("OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere cannot be read"));
  EXPECT_THAT(WarningOf({{"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/nowhere"}}, "https://c:1"),
              HasSubstr("both be set, or neither"));
  EXPECT_TRUE(Read({{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere"}}, "http://c:1")->warnings.empty());
}

TEST(TracingOptions, PropagatorsMayBeNone) {
  EXPECT_TRUE(ReadMore({{"OTEL_PROPAGATORS", "tracecontext,baggage"}}).continues_traces);
  EXPECT_FALSE(ReadMore({{"OTEL_PROPAGATORS", "none"}}).continues_traces);
}

TEST(TracingOptions, AreSaidInASentence) {
  EXPECT_EQ(Read({}, "https://c:1", 0.25)->Summary(), "to c:1/v1/traces, over TLS, 25 % of those that begin here");
  EXPECT_EQ(Read({}, "c:4318")->Summary(), "to c:4318/v1/traces, 100 % of those that begin here");
}

}  // namespace longshort::server::tracing_options_test
