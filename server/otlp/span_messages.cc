#include "server/otlp/span_messages.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/random_number.h"
#include "base/utf8.h"
#include "longshort_version.h"
#include "server/metrics/code_name.h"

namespace longshort {
namespace {

namespace otlp = opentelemetry::proto;
using otlp::common::v1::AnyValue;
using otlp::trace::v1::Span;
using otlp::trace::v1::Status;

constexpr char kSchema[] = "https://opentelemetry.io/schemas/1.45.0";
constexpr char kName[] = "longshort";
constexpr char kServiceName[] = "longshort-server";
constexpr size_t kMostMessageBytes = 256;

// A message with text that is not UTF-8 would be refused as a whole.
std::string Utf8(std::string text) {
  if (IsUtf8(text)) return text;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0x80) != 0; }, '?');
  return text;
}

struct Writer {
  void operator()(const std::string& text) const { value.set_string_value(Utf8(text)); }
  void operator()(int64_t number) const { value.set_int_value(number); }
  void operator()(double number) const { value.set_double_value(number); }
  void operator()(bool truth) const { value.set_bool_value(truth); }
  void operator()(const std::vector<std::string>& texts) const {
    for (const std::string& text : texts) value.mutable_array_value()->add_values()->set_string_value(Utf8(text));
  }

  AnyValue& value;
};

AnyValue& Add(const char* key, Span& span) {
  otlp::common::v1::KeyValue& attribute = *span.add_attributes();
  attribute.set_key(key);
  return *attribute.mutable_value();
}

// Those codes that the conventions take as a server's errors: others are what the client asked for.
bool IsServersError(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDataLoss;
}

uint32_t Flags(const TraceContext& context, bool parent_is_remote) {
  uint32_t flags = otlp::trace::v1::SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK;
  if (context.sampled) flags |= 1;
  if (context.random) flags |= 2;
  if (parent_is_remote) flags |= otlp::trace::v1::SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK;
  return flags;
}

// What all spans of a call have.
void Begin(const CallTrace& call, const std::string& trace_id, absl::Time begin, absl::Time end, Span& span) {
  span.set_trace_id(trace_id);
  span.set_trace_state(call.context.state);
  span.set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(begin)));
  span.set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(std::max(begin, end))));
}

void SetEnding(const CallTrace& call, Span& span) {
  const std::string code = CodeName(call.code);
  Add("rpc.status_code", span).set_string_value(code);
  if (!IsServersError(call.code)) return;
  Add("error.type", span).set_string_value(code);
  span.mutable_status()->set_code(Status::STATUS_CODE_ERROR);
  span.mutable_status()->set_message(Utf8(call.message.substr(0, kMostMessageBytes)));
}

void Fill(const CallTrace& call, const std::string& trace_id, absl::Duration wall_clock, Span& span) {
  Begin(call, trace_id, call.begin + wall_clock, call.end + wall_clock, span);
  span.set_span_id(call.context.span_id.ToBytes());
  if (call.parent.valid()) span.set_parent_span_id(call.parent.ToBytes());
  span.set_flags(Flags(call.context, call.parent.valid() && call.is_remote));
  span.set_name(call.method);
  span.set_kind(call.is_remote ? Span::SPAN_KIND_SERVER : Span::SPAN_KIND_INTERNAL);
  if (call.is_remote) {
    Add("rpc.system.name", span).set_string_value("grpc");
    Add("rpc.method", span).set_string_value(call.method);
  }
  SetEnding(call, span);
  for (const Attribute& attribute : call.attributes) std::visit(Writer{Add(attribute.key, span)}, attribute.value);
  if (call.parts > 1) Add("longshort.parts", span).set_int_value(call.parts);
}

void Fill(const StageSpan& stage, const CallTrace& call, const std::string& trace_id, const std::string& call_span,
          absl::Duration wall_clock, Span& span) {
  // The engine and who made the call looked at the clock one after the other.
  const absl::Time begin = std::clamp(stage.begin, call.begin, call.end);
  Begin(call, trace_id, begin + wall_clock, std::clamp(stage.end, begin, call.end) + wall_clock, span);
  span.set_span_id(SpanId{RandomNumber() | 1}.ToBytes());
  span.set_parent_span_id(call_span);
  span.set_flags(Flags(call.context, false));
  span.set_name(stage.name);
  span.set_kind(Span::SPAN_KIND_INTERNAL);
  if (stage.part >= 0 && call.parts > 1) Add("longshort.part", span).set_int_value(stage.part);
  for (const auto& [key, count] : stage.counts) {
    if (key != nullptr) Add(key, span).set_int_value(count);
  }
}

// A random UUID (version 4).
std::string DrawInstanceId() {
  const uint64_t high = RandomNumber();
  const uint64_t low = RandomNumber();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, high >> 16 & 0xFFFF, high & 0xFFF,
                         0x8000 | (low >> 48 & 0x3FFF), low & 0xFFFF'FFFF'FFFF);
}

}  // namespace

otlp::resource::v1::Resource ResourceOf(const TracingOptions& options) {
  // What is said last counts.
  const TextPairs own = {{"service.name", kServiceName},
                         {"service.version", std::string(kVersion)},
                         {"service.instance.id", DrawInstanceId()},
                         {"telemetry.sdk.name", kName},
                         {"telemetry.sdk.language", "cpp"},
                         {"telemetry.sdk.version", std::string(kVersion)}};
  otlp::resource::v1::Resource resource;
  for (const TextPairs& pairs : {own, options.resource}) {
    for (const auto& [key, value] : pairs) {
      auto& attributes = *resource.mutable_attributes();
      auto same = std::find_if(attributes.begin(), attributes.end(), [&](const auto& one) { return one.key() == key; });
      auto& attribute = same != attributes.end() ? *same : *attributes.Add();
      attribute.set_key(key);
      attribute.mutable_value()->set_string_value(value);
    }
  }
  return resource;
}

void AddSpans(const std::vector<std::unique_ptr<CallTrace>>& calls, const otlp::resource::v1::Resource& resource,
              absl::Duration wall_clock, otlp::collector::trace::v1::ExportTraceServiceRequest& request) {
  otlp::trace::v1::ResourceSpans& of_resource = *request.add_resource_spans();
  *of_resource.mutable_resource() = resource;
  of_resource.set_schema_url(kSchema);
  otlp::trace::v1::ScopeSpans& scope = *of_resource.add_scope_spans();
  scope.set_schema_url(kSchema);
  scope.mutable_scope()->set_name(kName);
  scope.mutable_scope()->set_version(std::string(kVersion));
  for (const std::unique_ptr<CallTrace>& call : calls) {
    const std::string trace_id = call->context.trace_id.ToBytes();
    const std::string call_span = call->context.span_id.ToBytes();
    Fill(*call, trace_id, wall_clock, *scope.add_spans());
    for (const StageSpan& stage : call->stages) {
      Fill(stage, *call, trace_id, call_span, wall_clock, *scope.add_spans());
    }
  }
}

}  // namespace longshort
