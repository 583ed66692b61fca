#include <google/protobuf/arena.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/random_number.h"
#include "base/utf8.h"
#include "longshort_version.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/monitoring/trace_exporter.h"

namespace longshort::server {
namespace {

namespace otlp = opentelemetry::proto;
using otlp::collector::trace::v1::ExportTraceServiceRequest;
using otlp::common::v1::AnyValue;
using otlp::common::v1::KeyValue;
using otlp::trace::v1::Span;
using otlp::trace::v1::Status;

constexpr char kSchema[] = "https://opentelemetry.io/schemas/1.45.0";
constexpr char kName[] = "longshort";
constexpr char kServiceName[] = "longshort-server";
constexpr size_t kMaxMessageBytes = 256;

// Text from clients may contain any bytes. A collector would reject a whole message that is not UTF-8.
std::string Utf8(std::string text) {
  if (IsUtf8(text)) return text;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0x80) != 0; }, '?');
  return text;
}

void Set(const std::string &text, AnyValue &value) { value.set_string_value(Utf8(text)); }
void Set(int64_t number, AnyValue &value) { value.set_int_value(number); }
void Set(double number, AnyValue &value) { value.set_double_value(number); }
void Set(bool truth, AnyValue &value) { value.set_bool_value(truth); }
void Set(const std::vector<std::string> &texts, AnyValue &value) {
  for (const std::string &text : texts) value.mutable_array_value()->add_values()->set_string_value(Utf8(text));
}

template <typename Message>
AnyValue &AddAttribute(const char *key, Message &message) {
  KeyValue &attribute = *message.add_attributes();
  attribute.set_key(key);
  return *attribute.mutable_value();
}

// Codes that the conventions treat as server errors; others are results that the client asked for.
bool IsServersError(absl::StatusCode code) {
  return code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDeadlineExceeded ||
         code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDataLoss;
}

uint32_t Flags(const TraceContext &context, bool parent_is_remote) {
  uint32_t flags = otlp::trace::v1::SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK;
  if (context.sampled) flags |= 1;
  if (context.random) flags |= 2;
  if (parent_is_remote) flags |= otlp::trace::v1::SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK;
  return flags;
}

// A random UUID (version 4).
std::string DrawInstanceId() {
  const uint64_t high = RandomNumber();
  const uint64_t low = RandomNumber();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, high >> 16 & 0xFFFF, high & 0xFFF,
                         0x8000 | (low >> 48 & 0x3FFF), low & 0xFFFF'FFFF'FFFF);
}

// The fields that all spans of a call share. `parent_is_remote`: the parent belongs to another process.
Span &AddSpan(const CallTrace &call, const std::string &id, const std::string &parent, bool parent_is_remote,
              otlp::trace::v1::ScopeSpans &spans) {
  Span &span = *spans.add_spans();
  span.set_trace_id(call.context.trace_id.ToBytes());
  span.set_span_id(id);
  span.set_trace_state(call.context.state);
  span.set_parent_span_id(parent);
  span.set_flags(Flags(call.context, parent_is_remote));
  return span;
}

// `wall_clock`: the offset from MonotonicNow to the wall clock.
void SetTimes(absl::Time begin, absl::Time end, absl::Duration wall_clock, Span &span) {
  span.set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(begin + wall_clock)));
  span.set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(std::max(begin, end) + wall_clock)));
}

void AddCall(const CallTrace &call, absl::Duration wall_clock, otlp::trace::v1::ScopeSpans &spans) {
  const bool has_parent = call.parent.valid();
  Span &span = AddSpan(call, call.context.span_id.ToBytes(), has_parent ? call.parent.ToBytes() : "",
                       has_parent && call.is_remote, spans);
  span.set_name(call.method);
  span.set_kind(call.is_remote ? Span::SPAN_KIND_SERVER : Span::SPAN_KIND_INTERNAL);
  SetTimes(call.begin, call.end, wall_clock, span);
  if (call.is_remote) {
    AddAttribute("rpc.system.name", span).set_string_value("grpc");
    AddAttribute("rpc.method", span).set_string_value(call.method);
  }
  const std::string code = absl::StatusCodeToString(call.code);
  AddAttribute("rpc.status_code", span).set_string_value(code);
  for (const Attribute &attribute : call.attributes) {
    std::visit([&](const auto &value) { Set(value, AddAttribute(attribute.key, span)); }, attribute.value);
  }
  if (call.parts > 1) AddAttribute("longshort.parts", span).set_int_value(call.parts);
  if (!IsServersError(call.code)) return;
  AddAttribute("error.type", span).set_string_value(code);
  span.mutable_status()->set_code(Status::STATUS_CODE_ERROR);
  span.mutable_status()->set_message(Utf8(call.message.substr(0, kMaxMessageBytes)));
}

void AddStage(const StageSpan &stage, const CallTrace &call, absl::Duration wall_clock,
              otlp::trace::v1::ScopeSpans &spans) {
  Span &span = AddSpan(call, SpanId{RandomNumber() | 1}.ToBytes(), call.context.span_id.ToBytes(), false, spans);
  span.set_name(stage.name);
  span.set_kind(Span::SPAN_KIND_INTERNAL);
  // The engine and the call's owner read the clock at different moments.
  const absl::Time begin = std::clamp(stage.begin, call.begin, call.end);
  SetTimes(begin, std::clamp(stage.end, begin, call.end), wall_clock, span);
  if (stage.part >= 0 && call.parts > 1) AddAttribute("longshort.part", span).set_int_value(stage.part);
  for (const auto &[key, count] : stage.counts) {
    if (key != nullptr) AddAttribute(key, span).set_int_value(count);
  }
}

}  // namespace

otlp::resource::v1::Resource ResourceOf(const TracingOptions &options) {
  // The last value of a key takes effect.
  const TextPairs own = {{"service.name", kServiceName},
                         {"service.version", std::string(kVersion)},
                         {"service.instance.id", DrawInstanceId()},
                         {"telemetry.sdk.name", kName},
                         {"telemetry.sdk.language", "cpp"},
                         {"telemetry.sdk.version", std::string(kVersion)}};
  otlp::resource::v1::Resource resource;
  for (const TextPairs &pairs : {own, options.resource}) {
    for (const auto &[key, value] : pairs) {
      auto &attributes = *resource.mutable_attributes();
      auto same = std::find_if(attributes.begin(), attributes.end(), [&](const auto &one) { return one.key() == key; });
      auto &attribute = same != attributes.end() ? *same : *attributes.Add();
      attribute.set_key(key);
      attribute.mutable_value()->set_string_value(value);
    }
  }
  return resource;
}

std::string EncodeSpans(const otlp::resource::v1::Resource &resource,
                        const std::vector<std::unique_ptr<CallTrace>> &calls, absl::Duration wall_clock) {
  google::protobuf::Arena arena;
  auto &request = *google::protobuf::Arena::CreateMessage<ExportTraceServiceRequest>(&arena);
  otlp::trace::v1::ResourceSpans &of_resource = *request.add_resource_spans();
  *of_resource.mutable_resource() = resource;
  of_resource.set_schema_url(kSchema);
  otlp::trace::v1::ScopeSpans &spans = *of_resource.add_scope_spans();
  spans.mutable_scope()->set_name(kName);
  spans.mutable_scope()->set_version(std::string(kVersion));
  spans.set_schema_url(kSchema);
  for (const std::unique_ptr<CallTrace> &call : calls) {
    AddCall(*call, wall_clock, spans);
    for (const StageSpan &stage : call->stages) AddStage(stage, *call, wall_clock, spans);
  }
  return request.SerializeAsString();
}

}  // namespace longshort::server
